"""How tests are shared out among processes: how many there are, which files go first, and which tests go apart.

The longest file goes first, by what it took in the last run of this goal, which .pytest_cache keeps: none is left over at the end.
The clock says it, as a file that waits keeps its process, too. In a checkout where nothing ran yet those of folders that start
Java are taken for the longest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import pytest
from tests.checkout import ROOT
from tests.goals import FOLDERS, MARKS, folder_of
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from skypane.runtime.resources import GIB

_MEMORY: Final = 4 * GIB
"""Bytes of a process of tests: its JVM, its Python workers, and the drivers that a test of recovery starts."""

APART: Final = (
    "tests/nature/test_nature.py::test_streams_survive_kills_at_each_place_and_in_drains",
    "tests/nature/test_nature.py::test_streams_survive_kills_at_random_moments",
)
"""Slow tests that take minutes, and need not run in one process with the others of their files: each of their parameters goes alone."""

_SESSION: Final = re.compile(r"[( ]spark[:,)]|\"spark\"|mark\.spark\b")
"""How a file takes a session of Spark: as an argument, by its name, or by a mark."""

_GUESSES: Final = {"apart": 300.0, "test": 10.0, "pages": 10.0, "quick": 5.0, "check": 1.0}
"""Seconds of what has not been measured here: a test that goes apart, a file by the goal of its folder."""


class Sharing(LoadFileScheduling):  # type: ignore[misc]
    """Shares out tests file by file, except those that go apart; all but the first `with_java` processes run none that takes a session.

    A Java costs half a minute until it is warm, and waits in a tenth of its time, in which others have the cores.
    """

    def __init__(self, config: pytest.Config, log: Any, with_java: int) -> None:
        super().__init__(config, log)
        self._with_java = with_java

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if len(self.nodes) > self._with_java:
            with_java = self.nodes.index(node) < self._with_java
            suitable = next((scope for scope in self.workqueue if needs_java(scope) is with_java), None)
            if suitable is not None:
                self.workqueue.move_to_end(suitable, last=False)
            elif not with_java:
                node.shutdown()
                return
        super()._assign_work_unit(node)


@cache
def needs_java(scope: str) -> bool:
    """Return whether a file may take the session of its process."""
    return _SESSION.search((ROOT / scope.partition("::")[0]).read_text()) is not None


def together(nodeid: str) -> str:
    """Return what names those tests that one process has to run: a file, or a test that goes apart."""
    return nodeid if _is_apart(nodeid) else nodeid.partition("::")[0]


def _is_apart(nodeid: str) -> bool:
    return nodeid.partition("[")[0] in APART


def workers(cores: int, memory: int) -> int:
    """Return how many processes a machine with so many bytes of memory has room for, as some wait for others."""
    return max(1, min(cores * 3 // 2, memory // _MEMORY))


def with_java(cores: int, goal: str) -> int:
    """Return in how many of these processes tests may take a session: pages have few that do, other goals than `test` many."""
    if goal == "pages":
        return max(1, cores // 2)
    return cores * 3 // 2 if any(mark in goal for mark in MARKS) else cores


def turn(nodeid: str, measured: Mapping[str, float]) -> float:
    """Return by what tests are sorted: the longest file first, its own tests in pytest's order."""
    if (known := measured.get(together(nodeid))) is not None:
        return -known
    folder = folder_of(nodeid.partition("::")[0].removeprefix("tests/"))
    return -_GUESSES["apart" if _is_apart(nodeid) else FOLDERS[folder] if folder else "check"]


def measured(config: pytest.Config) -> dict[str, float]:
    """Return the seconds of files in the last run of this goal, as far as there was one."""
    cache = _cache(config)
    return cache.get(_key(config), {}) if cache else {}


def keep(config: pytest.Config, tests: Iterable[tuple[str, float]]) -> None:
    """Note what tests have taken, for the next run of this goal; files that did not run keep what they had."""
    taken: dict[str, float] = {}
    for nodeid, seconds in tests:
        taken[together(nodeid)] = taken.get(together(nodeid), 0.0) + seconds
    if taken and (cache := _cache(config)):
        cache.set(_key(config), measured(config) | taken)


def _cache(config: pytest.Config) -> pytest.Cache | None:
    """Return what .pytest_cache keeps, None with `-p no:cacheprovider`."""
    return getattr(config, "cache", None)


def _key(config: pytest.Config) -> str:
    marks = config.getoption("markexpr")
    return f"skypane/seconds/{marks if marks in MARKS else 'test'}"
