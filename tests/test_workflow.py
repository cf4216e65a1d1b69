"""What a stranger's first commands rest on: goals of make, and the workflow that calls them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from measure.versions.lock import DEVELOPMENT, OLDEST, lines, versions
from packaging.version import Version
from tests.checkout import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
GOALS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
STEPS = [(name, step) for name, job in WORKFLOW["jobs"].items() for step in job["steps"]]


def named_in(text: str) -> list[str]:
    """Return the goals of the commands `make GOAL` in a page: those in code, as `make` is an English word too."""
    return re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, re.MULTILINE)


def test_the_workflow_runs_goals_of_the_makefile_and_nothing_else():
    commands = [step["run"] for _, step in STEPS if "run" in step]
    goals = [
        re.fullmatch(r"make ([a-z][\w-]*)( [A-Z]+=(\$\{\{ [\w.]+ \}\}|[^\s$]+))*", command) for command in commands
    ]
    assert all(goals), commands
    run = {goal[1] for goal in goals if goal}
    assert (
        run
        == {"check", "test", "oldest", "core", "docs", "pages", "bench", "wheel", "night", "slow", "newest"}
        <= GOALS
    )


def test_each_job_checks_out_what_it_runs_and_has_an_end():
    assert all(job["timeout-minutes"] for job in WORKFLOW["jobs"].values())
    first = {name: job["steps"][0]["uses"].partition("@")[0] for name, job in WORKFLOW["jobs"].items()}
    assert set(first.values()) == {"actions/checkout"}
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for _, step in STEPS if "uses" in step)


def test_tests_run_on_each_python_that_the_package_supports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == supported


def test_core_tests_run_with_each_pyspark_from_the_oldest_to_the_locked_one():
    """`make oldest` has the first, `make test` the last; those between have a job each."""
    oldest, newest = (Version(versions(lines(lock), "3.11")["pyspark"]) for lock in (OLDEST, DEVELOPMENT))
    between = [f"{newest.major}.{minor}" for minor in range(oldest.minor + 1, newest.minor)]
    assert oldest.major == newest.major
    assert WORKFLOW["jobs"]["spark"]["strategy"]["matrix"]["spark"] == between


@pytest.mark.long
@pytest.mark.parametrize("broken", ["runs-on: [", "timeout-minutes: soon", "usess: actions/checkout@v4"])
def test_a_workflow_that_no_host_would_take_is_reported(broken: str, tmp_path: Path):
    good = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    name = broken.partition(":")[0].removesuffix("s") if broken.startswith("uses") else broken.partition(":")[0]
    (tmp_path / "good.yml").write_text(good)
    (tmp_path / "broken.yml").write_text(re.sub(rf"\b{name}: .*", broken, good, count=1))
    checker = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    assert " ".join(checker) in MAKEFILE
    program = [str(Path(sys.executable).with_name(checker[0])), *checker[1:]]
    codes = [subprocess.run([*program, tmp_path / name], check=False, capture_output=True).returncode
             for name in ("good.yml", "broken.yml")]  # fmt: skip
    assert codes == [0, 1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", ".pre-commit-config.yaml"])
def test_a_page_names_goals_that_there_are(page: str):
    named = named_in((ROOT / page).read_text())
    assert named
    assert set(named) <= GOALS


def test_goals_in_the_help_exist_and_make_can_read_the_makefile():
    listed = re.findall(r"\bmake ([a-z][\w-]*) ", "\n".join(re.findall("^#   (.*)$", MAKEFILE, re.MULTILINE)))
    assert {"check", "test", "pages", "slow", "night", "oldest"} <= set(listed) <= GOALS
    plan = subprocess.run(
        ["/usr/bin/make", "-n", *sorted(listed)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert plan.returncode == 0, plan.stderr


def test_hooks_call_the_programs_that_lint_calls():
    (hooks,) = (each["hooks"] for each in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"])
    called = {
        " ".join([Path(program).name, *arguments]) for program, *arguments in (hook["entry"].split() for hook in hooks)
    }
    assert called == {
        "ruff check --force-exclude",
        "ruff format --force-exclude",
        "mypy",
        "python -m tests.prose",
        "python -m tests.references",
    }
    assert all(
        f"$(BIN)/{called_by}" in MAKEFILE
        for called_by in ("ruff check", "ruff format", "mypy", "python -m tests.references")
    )
    assert all(hook["language"] == "system" for hook in hooks)
