"""What goals of the Makefile would do in a new checkout, and in one that has everything; and which of them runs a test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.goals import FILES, FOLDERS, MARKS, PARTS, fault, folder_of, goals
from tests.small_run import pytest_of

OF_MAKE = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"})
"""What the goal that runs the tests passes on to other goals."""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def would_do(goal: str, environment: Path) -> str:
    """Return the commands that make would run for a goal, in an environment of this place."""
    command = ["make", "--dry-run", "--no-print-directory", goal, f"VENV={environment}"]
    own = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout


def made(environment: Path, *stamps: str) -> Path:
    """Return an environment in which all is newer than what it was made from."""
    (environment / "bin").mkdir(parents=True)
    for name in ("bin/python", *stamps):
        (environment / name).touch()
    return environment


def test_a_demo_in_a_new_checkout_installs_what_it_needs(tmp_path: Path):
    commands = would_do("demo", tmp_path / "new")
    assert "installing skypane[demo,java]" in commands
    assert "--editable '.[demo,java]'" in commands
    assert "papers" not in commands
    assert commands.rstrip().endswith("bin/skypane demo")


def test_other_goals_then_install_the_rest(tmp_path: Path):
    commands = would_do("doctor", made(tmp_path / "half", ".installed-for-demo"))
    assert "dev" in commands.partition("installing skypane[")[2].partition("]")[0].split(",")
    assert "--editable ./papers" in commands


@pytest.mark.parametrize("stamp", [".installed", ".installed-for-demo"])
def test_a_demo_installs_nothing_twice(stamp: str, tmp_path: Path):
    environment = made(tmp_path / "there", stamp)
    assert would_do("demo", environment) == f"{environment}/bin/skypane demo \n"


def test_each_folder_is_there_and_holds_tests():
    assert [folder for folder in FOLDERS if not any((ROOT / "tests" / folder).rglob("test_*.py"))] == []
    assert list(FOLDERS) == sorted(FOLDERS)


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("test_imports.py", FILES),
        ("kernels/test_exact.py", "kernels"),
        ("operators/fronts/test_front.py", "operators"),
        ("runtime/many/test_inputs.py", "runtime/many"),
        ("new/test_new.py", None),
    ],
)
def test_a_test_is_in_the_innermost_folder_that_holds_its_file(file: str, folder: str | None):
    assert folder_of(file) == folder


@pytest.mark.parametrize(
    ("folder", "marks", "expected"),
    [
        ("kernels", [], ["check", "quick", "test"]),
        ("kernels", ["long"], ["quick", "test"]),
        ("kernels", ["spark", "core"], ["test"]),
        ("chaos", [], ["quick", "test"]),
        ("runtime", [], ["test"]),
        ("docs", ["long"], ["pages"]),
        ("docs", ["slow"], ["slow"]),
        ("kernels", ["night", "spark"], ["night"]),
    ],
)
def test_a_mark_names_the_goal_or_else_the_folder_does(folder: str, marks: list[str], expected: list[str]):
    assert goals(folder, marks) == expected
    assert set(expected) <= {*PARTS, *MARKS}


def test_the_fault_of_a_test_without_a_goal_or_with_two_names_what_to_write():
    assert fault("kernels/test_exact.py", ["slow", "spark"]) is None
    assert "FOLDERS of tests/goals.py" in str(fault("new/test_new.py", []))
    assert str(fault("kernels/test_exact.py", ["slow", "pages"])).startswith("is marked pages and slow")


PLACES = {
    "kernels/test_kept.py": "def test_kept(): ...",
    "new/test_new.py": "def test_new(): ...",
    "chaos/test_two.py": """
import pytest
pytestmark = pytest.mark.slow
@pytest.mark.night
def test_two(): ...
""",
}
CONFTEST = """
from pathlib import Path
from tests.goals import Goals
def pytest_configure(config):
    for name in ("check", "quick", "test", "slow", "night"):
        config.addinivalue_line("markers", name)
    config.pluginmanager.register(Goals(Path(__file__).parent))
"""


@pytest.mark.long
@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_with_such_tests_fails_and_names_them(processes: str, tmp_path: Path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for file, text in PLACES.items():
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(text)
    done = pytest_of(tmp_path, "--import-mode=importlib", processes=processes)
    output = done.stdout
    assert done.returncode != 0
    assert "new/test_new.py::test_new is in a folder without a goal: write" in output
    assert "chaos/test_two.py::test_two is marked slow and night: leave it the one" in output
    assert "test_kept" not in output
    done = pytest_of(tmp_path, "-m", "check", "--ignore=new", processes=processes)
    assert done.stdout.count("1 passed") == 1  # it reads no file of the other folders


def test_a_stranger_finds_each_folder_and_its_goal():
    rows = [line.split("|") for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("|")]
    listed = {
        folder: row[3] for row in rows if len(row) == 6 for folder in re.findall("`([a-z]+(?:/[a-z]+)*)`", row[2])
    }
    assert listed.keys() == FOLDERS.keys() - {FILES}
    parts = {"check", "quick", "test"}
    assert [folder for folder, goal in FOLDERS.items() if goal == "pages" and "pages" not in listed[folder]] == []
    assert [
        folder for folder, goal in FOLDERS.items() if folder != FILES and goal in parts and not listed[folder].strip()
    ] == []
