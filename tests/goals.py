"""Which goal of the Makefile runs a test: its mark says so, or else its folder below tests/.

`make check` is a part of `make quick`, and that of `make test`. A test that belongs to no goal, or to two, fails the collection with
a sentence that says what to write.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final, Literal

import pytest
from tests.checkout import ROOT

Goal = Literal["check", "quick", "test", "pages"]

PARTS: Final = ("check", "quick", "test")
"""Goals for tests that have no mark, each a part of the next: those that answer soon; those that start no Java; all."""

MARKS: Final = ("pages", "slow", "night")
"""Marks of tests that `make test` leaves to the goals of these names; a test has one of them at most."""

FILES: Final = "."
"""The folder of the files of tests/ itself."""

FOLDERS: Final[dict[str, Goal]] = {
    FILES: "check",
    "chaos": "quick",
    "cli": "check",
    "control": "check",
    "cpus": "quick",
    "datasets": "check",
    "describing": "check",
    "diagnosis": "check",
    "differential": "quick",
    "docs": "pages",
    "engine": "quick",
    "examples": "check",
    "jobs": "test",
    "kernels": "check",
    "measure": "pages",
    "model": "check",
    "multiway": "check",
    "nature": "check",
    "opentelemetry": "check",
    "operators": "check",
    "papers": "pages",
    "preference": "check",
    "progress": "check",
    "prometheus": "check",
    "reporting": "check",
    "runtime": "test",
    "runtime/compressed": "test",
    "runtime/conditions": "test",
    "runtime/connect": "test",
    "runtime/decisions": "test",
    "runtime/late": "test",
    "runtime/many": "test",
    "runtime/objects": "test",
    "runtime/receiving": "test",
    "runtime/restarts": "test",
    "runtime/sinks": "test",
    "runtime/sql": "test",
    "runtime/static": "test",
    "sim": "check",
    "stores": "quick",
    "workloads": "check",
}
"""The first goal that runs what has no mark in each folder. Of two folders that hold a file the inner one counts."""


def folder_of(file: PurePath | str) -> str | None:
    """Return the folder of a file, whose path begins below tests/, None if it has none."""
    above = [str(path) for path in PurePath(file).parents]
    return next((path for path in above if path in FOLDERS and (path != FILES or len(above) == 1)), None)


def goals(folder: str, marks: Collection[str]) -> list[str]:
    """Return the goals that run a test of a folder with such marks, the shortest first."""
    if marked := [mark for mark in MARKS if mark in marks]:
        return marked
    if FOLDERS[folder] not in PARTS:
        return [FOLDERS[folder]]
    first = "test" if "spark" in marks else "quick" if "long" in marks else "check"
    return list(PARTS[max(PARTS.index(first), PARTS.index(FOLDERS[folder])) :])


def fault(file: PurePath | str, marks: Collection[str]) -> str | None:
    """Return what is wrong with the goals of a test, and what to write; None if nothing is."""
    folder = folder_of(file)
    if folder is None:
        return "is in a folder without a goal: write its goal into FOLDERS of tests/goals.py"
    if len(found := goals(folder, marks)) > 1 and found[0] in MARKS:
        return f"is marked {' and '.join(found)}: leave it the one whose goal shall run it"
    return None


@dataclass(frozen=True)
class Goals:
    """The plugin: tests without a goal cannot be collected, and each has the marks of the goals that run it."""

    tests: Path = ROOT / "tests"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        """Fail the collection of a file, or a class, with a test that has no goal, or two."""
        report = yield
        items = [item for item in report.result or () if isinstance(item, pytest.Item)]
        faults = [(item.nodeid, fault(file, _marks(item))) for item in items if (file := self._below(item.path))]
        if lines := [f"{name} {what}" for name, what in faults if what is not None]:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(lines), []
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark tests before pytest leaves out those of other goals."""
        for item in items:
            if "spark" in getattr(item, "fixturenames", ()):  # directly or through a fixture of its own
                item.add_marker("spark")
            folder = self.folder(item.path)
            for goal in goals(folder, _marks(item)) if folder else ():
                item.add_marker(goal)

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Read no file of a folder that has nothing for the goal."""
        goal, folder = config.getoption("markexpr"), self.folder(collection_path)
        return True if goal in PARTS and folder and goal not in goals(folder, ()) else None

    def folder(self, path: Path) -> str | None:
        """Return the folder of a file of tests, None if it has none or is another one."""
        file = self._below(path)
        return None if file is None or path.is_dir() else folder_of(file)

    def _below(self, path: Path) -> Path | None:
        return path.relative_to(self.tests) if path.is_relative_to(self.tests) else None


def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}
