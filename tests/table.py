"""A table at the end of a run: what ran, its CPU time and its seconds by the clock, of which kind it was, and how it ended.

A run of `make test` fails if a test or a folder of it has taken more CPU time than one may: a suite that is slow is run too seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, Literal, get_args

import pytest
from tests.goals import folder_of
from tests.processes import keep
from tests.spent import APART, Kind

By = Literal["test", "file", "folder"]

_ORDER: Final = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")
"""Outcomes; of two parts of a test the later one here counts, and so of the tests of a file."""
_KINDS: Final = get_args(Kind)


@dataclass
class Row:
    """Seconds and outcome of a test, a file or a folder, and its seconds of CPU by kind of test."""

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    tests: int = 0
    outcome: str = _ORDER[0]

    def add(self, seconds: float, outcome: str) -> None:
        self.seconds += seconds
        self.outcome = max(self.outcome, outcome, key=_ORDER.index)

    def join(self, other: Row) -> None:
        self.add(other.seconds, other.outcome)
        self.tests += other.tests
        for kind, seconds in other.cpu.items():
            self.spend(kind, seconds)

    def spend(self, kind: str, seconds: float) -> None:
        self.cpu[kind] = self.cpu.get(kind, 0.0) + seconds

    @property
    def all_cpu(self) -> float:
        return sum(self.cpu.values())


@dataclass(frozen=True)
class Limits:
    """The most seconds of CPU that a test and a folder may take."""

    test: float
    folder: float

    def passed(self, rows: Mapping[str, Row]) -> Iterator[str]:
        """Yield what took more."""
        for by, most in (("test", self.test), ("folder", self.folder)):
            for name, row in grouped(rows, by).items():
                if (took := row.all_cpu) > most and name != APART:
                    yield f"{name} took {took:.1f} s of CPU, and a {by} may take {most:g}"


@dataclass(eq=False)  # pytest keeps plugins in sets
class Table:
    """The plugin: a row for each test; a table of them by what `by` says, if it says something."""

    by: By | None
    limits: Limits | None = None
    rows: dict[str, Row] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self.rows.setdefault(report.nodeid, Row(tests=1))
        row.add(report.duration, _outcome(report))
        if report.when == "teardown":
            row.spend(report.kind, report.cpu)
            self.rows.setdefault(APART, Row()).spend(report.kind, report.apart)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        keep(session.config, ((test, row.seconds) for test, row in self.rows.items() if test != APART))
        if session.exitstatus == pytest.ExitCode.OK and any(self._passed()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.by:
            terminalreporter.section(f"what ran, by {self.by}")
            terminalreporter.write_line("\n".join(lines(grouped(self.rows, self.by))))
        if told := list(self._passed()):
            terminalreporter.section("what took too long", red=True)
            terminalreporter.write_line("\n".join(told))

    def _passed(self) -> Iterable[str]:
        return self.limits.passed(self.rows) if self.limits else ()


def grouped(rows: Mapping[str, Row], by: str) -> dict[str, Row]:
    """Return rows of tests as those of files, or of folders."""
    groups: dict[str, Row] = {}
    for test, row in rows.items():
        groups.setdefault(_group(test, by), Row()).join(row)
    return groups


def _group(test: str, by: str) -> str:
    file = test.partition("::")[0]
    if by == "test" or test == APART:
        return test
    folder = folder_of(file.removeprefix("tests/"))
    return file if by == "file" or folder is None else str(PurePath("tests", folder))


def lines(rows: Mapping[str, Row]) -> Iterable[str]:
    """Yield the table's lines, the dearest first, the sum last."""
    kinds = "".join(f"{kind:>9}" for kind in _KINDS)
    yield f"{'CPU s':>9}{kinds}{'seconds':>9}{'tests':>7}  {'outcome':<8}"
    total = Row()
    for name, row in sorted(rows.items(), key=lambda item: (-item[1].all_cpu, -item[1].seconds)):
        total.join(row)
        yield f"{_figures(row)}  {row.outcome:<8}  {name}"
    bad = sum(row.outcome in {"failed", "error", "xpassed"} for row in rows.values())
    yield f"{_figures(total)}  {len(rows)} in all, {bad or 'none'} failed"


def _figures(row: Row) -> str:
    seconds = (row.all_cpu, *(row.cpu.get(kind, 0.0) for kind in _KINDS), row.seconds)
    return "".join(f"{each:>9.1f}" for each in seconds) + f"{row.tests:>7}"


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return "error" if report.failed and report.when != "call" else report.outcome
