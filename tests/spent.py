"""CPU time of tests: of the process that runs them, and of all that it has started, directly or not, Java among them.

The clock would say what else the machine does. What a fixture of the whole session takes, such as the start of Java, counts to no
test: to which one would be chance. What a process takes after its parent was killed is missed. Where there is no /proc, only processes
that have ended count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any, Final, Literal

import pytest
from tests.nature.processes import descendants, stat

Kind = Literal["pure", "process", "Java"]

APART: Final = "fixtures of the session"
"""What is spent, and counts to no test."""

_OF_PROCESSES: Final = 0.1
"""Seconds of other processes from which a test is one that starts some: what an idle Java does is less."""

_SHORT: Final = 0.02
"""Seconds by the clock of a test that starts nothing: what others have taken meanwhile counts to the next longer test. To look at
each process of the machine after each of thousands of tests would take longer than most of them."""

_TICK: Final = os.sysconf("SC_CLK_TCK")


def cpu() -> tuple[float, float]:
    """Return the seconds that this process has taken so far, and those of the ones that it has started."""
    own = os.times()
    living = sum(sum(map(int, stat(process)[11:15])) for process in descendants(os.getpid())) / _TICK
    return own.user + own.system, own.children_user + own.children_system + living


class Spent:
    """The plugin: each test's last report has what all of it took, in `cpu`, its kind, and what was spent that counts to no test."""

    def __init__(self) -> None:
        self._last = cpu()
        self._apart, self._ended = (0.0, 0.0), time.monotonic()

    def pytest_collection_finish(self) -> None:
        self._last, self._ended = cpu(), time.monotonic()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Set aside what a fixture of the session takes."""
        before = cpu() if fixturedef.scope == "session" else None
        try:
            return (yield)
        finally:
            if before is not None:
                self._apart = _sum(self._apart, _difference(cpu(), before))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Add to the report of a test's end what was spent since the end of the one before."""
        report = yield
        if call.when == "teardown":
            is_short = time.monotonic() - self._ended < _SHORT
            now = (time.process_time(), self._last[1]) if is_short else cpu()
            own, others = _difference(_difference(now, self._last), self._apart)
            report.cpu, report.apart = max(0.0, own + others), sum(self._apart)
            report.kind = _kind(item, others)
            self._last, self._apart, self._ended = now, (0.0, 0.0), time.monotonic()
        return report


def _kind(item: pytest.Item, others: float) -> Kind:
    if item.get_closest_marker("spark"):
        return "Java"
    return "process" if others >= _OF_PROCESSES else "pure"


def _sum(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] + other[0], one[1] + other[1]


def _difference(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] - other[0], one[1] - other[1]
