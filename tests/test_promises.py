"""What docs promise has a test by name; the test is looked for, not run."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache

import pytest
from tests.checkout import ROOT

pytestmark = pytest.mark.pages

PROMISES = ROOT / "docs" / "promises.md"
PAGES = frozenset({
    "../README.md", "start.md", "design.md", "limits.md", "pipelines.md", "sinks.md", "progress.md", "aggregates.md", "amended-answers.md", "stays.md", "continuous.md", "sql.md", "admission.md", "security.md",
    "control.md", "multiway.md", "places.md", "workloads.md", "extending.md", "connect.md", "job-files.md", "monitoring.md", "diagnosis.md", "performance.md",
})  # fmt: skip
"""Pages that say what is lost, doubled, refused or bounded."""
OTHERS = frozenset({
    "bench-aggregates.md", "bench-continuous.md", "bench-kernels.md", "bench-streaming.md", "progress-yardstick.md",
    "reproductions.md", "kernels.md", "reference.md", "versions.md", "promises.md", "reliability.md", "glossary.md",
    "clusters.md", "scale.md", "tutorial-first-stream.md", "tutorial-budget.md",
    "index.md", "tutorials.md", "notebooks.md", "how-to.md", "explanation.md", "changelog.md", "contributing.md",
    "commands.md", "values.md",
    "how-to-files.md", "how-to-progress-policy.md", "how-to-spark-windows.md", "how-to-rejected-rows.md", "how-to-test-a-job.md", "how-to-wrong-clocks.md",
    "how-to-receive.md", "how-to-kafka.md", "how-to-delta.md", "how-to-postgresql.md", "how-to-object-store.md", "how-to-size-a-cluster.md", "how-to-checkpoint.md", "how-to-slow-stream.md", "how-to-elastic.md",
})  # fmt: skip
"""Pages of figures, names and commands, tutorials, how-to guides, the site's own, and lists of promises and their tests themselves."""

NIGHT = "pytest.mark.night"
HEAD = re.compile(r"## \[[^\]]+\]\(([^)]+)\)")
ROW = re.compile(r"\| (?P<promise>.+) \| `(?P<file>[\w/]+\.py)::(?P<test>\w+)` \|")


def promised() -> dict[str, list[tuple[str, str, str]]]:
    """Return promise, file and test of each row, by page."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    rows: list[tuple[str, str, str]] = []
    for line in PROMISES.read_text(encoding="utf-8").splitlines():
        if head := HEAD.fullmatch(line):
            rows = found.setdefault(head[1], [])
        elif line.startswith("|") and not line.startswith(("| promise", "|---")):
            row = ROW.fullmatch(line)
            assert row is not None, f"no promise and test: {line}"
            rows.append((row["promise"], row["file"], row["test"]))
    return found


@cache
def defined_in(file: str) -> frozenset[str]:
    """Return the functions of a module that pytest finds, those at its top, except for those that only run by night."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    of_all = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if any(text.startswith("pytestmark") and NIGHT in text for text in of_all):
        return frozenset()
    return frozenset(node.name for node in functions if all(ast.unparse(mark) != NIGHT for mark in node.decorator_list))


NAMED = re.compile(
    r"`(?P<folder>tests/\w+)`|`(?P<test>\w+)`|(?P<file>(?:\w+/)?\w+): (?P<all>all)?|(?P<module>(?:\w+/)?test_\w+)"
)
"""What the table of promises in reliability.md says of tests: `tests/nature`, recovery: `kills_at_exact_places`, first_start: all."""


def listed_in_reliability() -> list[tuple[str, str]]:
    """Return the files and folders that its table of promises names, each with the test that it names there, or with nothing."""
    section = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").split("\n## ")[1]
    found: list[tuple[str, str]] = []
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| promise"):
            file = ""
            for named in NAMED.finditer(line.split(" | ")[1]):
                if name := named["file"] or named["module"]:
                    folder, _, own = name.rpartition("/")
                    there = [*(ROOT / "tests").rglob(f"{folder or '.'}/test_{own.removeprefix('test_')}.py")]
                    file = str(there[0].relative_to(ROOT)) if len(there) == 1 else f"{len(there)} files {name}"
                if named["folder"] or named["module"] or named["all"]:
                    found.append((named["folder"] or file, ""))
                elif named["test"]:
                    found.append((file, f"test_{named['test']}"))
    return found


def test_each_promise_names_a_test_that_a_change_waits_for():
    rows = [row for rows in promised().values() for row in rows]
    missing = [
        f"{file}::{test}" for _, file, test in rows if not (ROOT / file).is_file() or test not in defined_in(file)
    ]
    assert missing == []
    assert all(test.startswith("test_") for _, _, test in rows)


def test_the_table_of_what_survives_what_names_tests_that_a_change_waits_for():
    listed = listed_in_reliability()
    assert len(listed) > 40
    assert [
        one for one in listed if not (ROOT / one[0]).exists() or (one[1] and one[1] not in defined_in(one[0]))
    ] == []


def test_each_page_that_promises_has_its_promises_listed_once():
    found = promised()
    assert {page for page, rows in found.items() if rows} == PAGES
    assert {page.name for page in PROMISES.parent.glob("*.md")} == PAGES - {"../README.md"} | OTHERS
    assert all((PROMISES.parent / page).is_file() for page in found)
    listed = [(page, promise) for page, rows in found.items() for promise, _, _ in rows]
    assert len(listed) == len(set(listed))


def test_the_page_names_the_reviewed_versions_of_each_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = "cli cloud delta iceberg java kafka mqtt opentelemetry postgresql prometheus".split()
    needed = [*project["dependencies"], *(one for name in extras for one in project["optional-dependencies"][name])]
    names = {re.split(r"[<>=\[ ]", one)[0] for one in needed}
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    reviewed = dict(re.findall(r"^\| ([\w-]+) \| (\d[\w.]*) \|", page, re.MULTILINE))
    assert names <= reviewed.keys(), names - reviewed.keys()
    locked = re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "locks" / "development.txt").read_text(), re.MULTILINE)
    assert not reviewed.items() - set(locked), "what the lock has now is to be reviewed"
    assert re.search(r"reviewed on \d{4}-\d{2}-\d{2}", page)
