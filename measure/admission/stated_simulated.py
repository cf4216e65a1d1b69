"""Readers for a rate that goes x10 at a stated time, in virtual time: with the statement, reacting only, and always all.

    python -m measure.admission.stated_simulated [--docs docs]

A simulation: the policies are those of the engine (rates_ahead, Readers), and batches, rows and readers are numbers. A
batch takes 0.6 s and 20 ms per row of a reader, and reads the rows that have come since the last one. A reader that is
added works only after the time that it takes to start. The rate is x1 for two minutes, x10 for two, and x1 for two.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

import skypane as sp
from measure.admission.steps_simulated import ITSELF, PARTS
from measure.elastic.service import SECONDS
from measure.tables import markdown_table, replace_between
from skypane.control.admission import MetaData
from skypane.control.admission.ahead import RatesAhead, rates_ahead
from skypane.control.admission.forecasting import HoltForecaster
from skypane.control.admission.readers import Backlog, ReaderBatch, ReadersState
from skypane.control.sizing import workers_for
from skypane.types import FloatArray

BOUND: Final = 5.0
"""L, in seconds."""
STEP: Final = 120.0
FACTORS: Final = (1, 10, 1)
BEGINS: Final = datetime(2026, 3, 2, 9, 28, tzinfo=UTC).timestamp()
STATED: Final = MetaData(changes=["x10 at 09:30 UTC", "x1 at 09:32 UTC"])
CASES: Final = tuple((rate, start) for rate in (25.0, 400.0) for start in (5.0, 30.0))
"""Rows per second at x1, and seconds that a reader takes to start."""
HISTORY: Final = 32


@dataclass
class Started:
    """Readers that were requested, and when the ones that still start will work."""

    takes: float
    ready: list[float] = field(default_factory=list)

    def working(self, now: float, requested: int) -> int:
        """Request so many readers; return how many of them work, at least one."""
        self.ready = sorted(self.ready)[:requested]
        self.ready += [now + self.takes if self.ready else now] * (requested - len(self.ready))
        return max(1, sum(at <= now for at in self.ready))


@dataclass
class Run:
    """The rows of a run with their waits in seconds, when they came, and the reader-seconds."""

    came: FloatArray
    waits: FloatArray
    reader_seconds: float

    def cells(self) -> list[str]:
        """Return what the run comes to; the waits are those of rows of the first minute at x10."""
        after = self.waits[(self.came >= STEP) & (self.came < STEP + 60)]
        return [
            f"{self.reader_seconds:.0f}", f"{np.median(after):.1f}", f"{np.percentile(after, 95):.1f}", f"{after.max():.1f}",
            f"{(after <= BOUND).mean():.0%}",
        ]  # fmt: skip


def run(rate: float, start: float, meta: MetaData, *, fixed: int | None = None) -> Run:
    """Return a run at a rate of so many rows per second at x1, with at most twice the readers that x10 keeps busy."""
    edges = np.arange(len(FACTORS) + 1) * STEP
    arrived = np.concatenate([[0.0], np.cumsum(np.array(FACTORS) * rate * STEP)])
    policy = sp.Readers(max_readers=most(rate), latency=f"{BOUND:g} seconds")
    # A stream that has run for a while: it has learned what a row takes, and has the readers of x1.
    state = ReadersState(workers_for(rate, SECONDS, policy.headroom), (SECONDS,))
    started, forecaster = Started(start), HoltForecaster()
    now, done, spent, ahead = ITSELF, 0.0, 0.0, RatesAhead()
    ends, rates, seen = [BEGINS], list[float](), 0.0
    came, waits = list[FloatArray](), list[FloatArray]()
    while done < arrived[-1] - 1e-6:
        upto = float(np.interp(now, edges, arrived))
        if now - (ends[-1] - BEGINS) >= 1.0:
            rates = [*rates, (upto - seen) / (now - (ends[-1] - BEGINS))][-HISTORY:]
            ends, seen = [*ends, BEGINS + now][-HISTORY - 1 :], upto
            if fixed is None:
                ahead = rates_ahead({"a": rates}, ends, {"a": meta}, "1 minute", forecaster)
        count = fixed
        if count is None:
            state, decision = policy.decide(state, Backlog(ahead.rate, upto - done, ahead.because))
            count = decision.value
        working = started.working(now, count)
        lasted = ITSELF + (upto - done) * SECONDS / working
        state = policy.observe(state, ReaderBatch(round(upto - done), lasted, working))
        times = np.interp(np.linspace(done, upto, PARTS * max(1, round(lasted)) + 1)[1:], arrived, edges)
        came.append(times)
        waits.append(now + lasted - times)
        spent += count * lasted
        now, done = now + lasted, upto
    return Run(np.concatenate(came), np.concatenate(waits), spent)


def most(rate: float) -> int:
    """Return the readers that there may be."""
    return round(2 * max(FACTORS) * rate * SECONDS)


def table(cases: Sequence[tuple[float, float]] = CASES) -> list[list[str]]:
    """Return a line for each case and way."""
    lines = []
    for rate, start in cases:
        ways = {
            "stated": run(rate, start, STATED),
            "reacting only": run(rate, start, MetaData()),
            f"always {most(rate)}": run(rate, start, MetaData(), fixed=most(rate)),
        }
        lines += [[f"{rate:.0f}", f"{start:.0f}", way, *one.cells()] for way, one in ways.items()]
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    given = parser.parse_args(arguments)
    head = ("rows/s at x1", "a reader starts in (s)", "readers", "reader-seconds", "a row's wait in the first minute at x10, median (s)", "95 %", "longest",
            "within 5 s")  # fmt: skip
    text = markdown_table(head, table())
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "admission.md", "stated simulated", text)


if __name__ == "__main__":
    main()
