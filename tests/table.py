"""A table at the end of a run: what ran, how long it took with what it had set up, and how it ended; the longest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

import pytest

By = Literal["test", "file"]

_ORDER: Final = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")
"""Outcomes; of two parts of a test the later one here counts, and so of the tests of a file."""


@dataclass
class Row:
    """Seconds and outcome of a test or a file."""

    seconds: float = 0.0
    outcome: str = _ORDER[0]

    def add(self, seconds: float, outcome: str) -> None:
        self.seconds += seconds
        self.outcome = max(self.outcome, outcome, key=_ORDER.index)


@dataclass
class Table:
    """The plugin: a row for each test, or for each file of tests."""

    by: By
    rows: dict[str, Row] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid if self.by == "test" else report.nodeid.partition("::")[0]
        self.rows.setdefault(name, Row()).add(report.duration, _outcome(report))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"what ran, by {self.by}")
        terminalreporter.write_line("\n".join(lines(self.rows)))


def lines(rows: dict[str, Row]) -> Iterable[str]:
    """Yield the table's lines, the sum last."""
    yield f"{'seconds':>9}  {'outcome':<8}  test"
    for name, row in sorted(rows.items(), key=lambda item: -item[1].seconds):
        yield f"{row.seconds:>9.1f}  {row.outcome:<8}  {name}"
    bad = sum(row.outcome in {"failed", "error", "xpassed"} for row in rows.values())
    yield f"{sum(row.seconds for row in rows.values()):>9.1f}  {len(rows)} in all, {bad or 'none'} failed"


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return "error" if report.failed and report.when != "call" else report.outcome
