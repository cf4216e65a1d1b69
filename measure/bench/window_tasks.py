"""The tasks of windows whose work is unequal: divided by what the last batches took, against runs of equal rows.

    python -m measure.bench.window_tasks [--quick]

A stream of panes whose numbers of rows are Pareto distributed, so that few panes bring most rows; groups are skewed as
well (the k-th is 1 / k as frequent as the first). A batch completes 20 windows. Each task is run alone in this process,
one after the other, as workers would run them at the same time, and the CPU seconds of the busiest task are the critical
path of the batch. Three divisions of the same windows are measured in turn:

    fixed        runs of equal rows, as before anything was measured
    chosen       by what the batches before have shown, as in the engine
    hindsight    by what the batch itself has shown, with both other divisions

The first batches are there to learn from; the last ones are measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

import skypane as sp
from measure.bench.division import Held
from measure.results.record import Found, Table
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.measurements import BatchMeasurements, PieceWork
from skypane.control.placement import DueWindows, place_windows
from skypane.control.window_costs import LearnedWindows
from skypane.control.window_division import Division, Piece, WindowDivision, WindowsToDivide, fixed_division
from skypane.control.window_work import DueRuns
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import DivisibleQuery, GrowingQuery, Query
from skypane.operators.window_query import WindowQuery
from skypane.runtime.spark.engine.wlq import sizes_of
from skypane.windows import Windows

CRITERIA: Final = 8
GROUPS: Final = 50
KEYS: Final = 5_000
WINDOWS: Final = 20
"""Windows that a batch completes."""
LEARNED: Final = 3
MEASURED: Final = 3
"""Batches to learn from, and batches that are measured."""
ROWS: Final = 60_000
"""Rows of a window, on average."""
POLICY: Final = WindowDivision()
_WORKERS: Final = Costs(job=0.0, divided_per_row=0.0)
"""Costs with which windows are never answered in the driver."""

_PREFERENCE = ", ".join(f"c{at} MIN" for at in range(CRITERIA))
QUERIES: Final[dict[str, Query]] = {
    "skyline": sp.Skyline(_PREFERENCE),
    "skyline by group": sp.Skyline(_PREFERENCE, by="group"),
    "top-k by group": sp.TopK(20, "c0 + c1", by="group"),
    "aggregate": sp.Aggregate("key", n=sp.count(), total=sp.sum("c0"), high=sp.max("c1")),
}

Task = WindowTask[Held]


@dataclass(frozen=True)
class Case:
    """A query, over windows of so many panes, by so many workers."""

    query: str
    panes: int
    workers: int


@dataclass(frozen=True)
class Shown:
    """Seconds of the busiest task, and the pieces."""

    longest: float
    pieces: tuple[PieceWork, ...]


def panes_of(query: Query, windows: Windows, batches: int, rows: int) -> list[Held]:
    """Return the partials of all panes of a stream."""
    rng = np.random.default_rng(5)
    length = windows.panes_per_window
    found = []
    frequency = 1 / np.arange(1, GROUPS + 1)
    for _ in range(batches * WINDOWS + length):
        count = int(np.clip((rng.pareto(1.2) + 0.1) * rows / length / 3, 5, 2 * rows))
        columns: dict[str, Any] = {f"c{at}": rng.random(count) for at in range(CRITERIA)}
        columns["group"] = rng.choice(GROUPS, count, p=frequency / frequency.sum())
        columns["key"] = rng.integers(0, KEYS, count)
        found.append(Held(query.lift(pa.table(columns))))
    return found


class Stream:
    """The windows of a query, batch by batch."""

    def __init__(self, case: Case, panes: Sequence[Held]) -> None:
        windows = Windows(case.panes, 1)
        self._case, self._panes = case, panes
        self._windows = WindowQuery(QUERIES[case.query], windows, None)
        schema = pa.table({f"c{at}": [0.0] for at in range(CRITERIA)} | {"group": [0], "key": [0]}).schema
        self._query = query = QUERIES[case.query]
        self._keys = isinstance(query, DivisibleQuery) and query.divisible(schema)
        self._growing = isinstance(query, GrowingQuery) and query.growth > 0
        self._once = self._windows.compares_once(schema)

    def tasks(self, batch: int) -> list[Task]:
        """Return the windows of a batch."""
        first, length = batch * WINDOWS, self._case.panes
        return [
            WindowTask(at, tuple((pane, (self._panes[pane],)) for pane in range(at, at + length)))
            for at in range(first, first + WINDOWS)
        ]

    def to_divide(self, tasks: Sequence[Task]) -> WindowsToDivide:
        """Return what the engine knows of these windows before it divides them."""
        distinct = {pane: held[0].rows for task in tasks for pane, held in task.panes}
        keys = (1 if self._growing else max(distinct.values())) if self._keys else 0
        due = DueWindows(
            len(tasks), sum(distinct.values()), self._case.panes, self._case.workers, keys, compared_once=self._once
        )
        place = place_windows(due, _WORKERS).value
        return WindowsToDivide(sizes_of(tasks), due, place, DEFAULT_COSTS)  # type: ignore[arg-type] # rows alone count

    def warm(self) -> None:
        """Load all kernels: those that answer windows, and those that divide them by keys."""
        parts = 2 if self._keys else 1
        self.run(self.tasks(0)[:2], Division.of_pieces(Piece(0, 2, part, parts) for part in range(parts)))

    def run(self, tasks: Sequence[Task], division: Division) -> Shown:
        """Run the tasks of a division, one after the other."""
        sizes, done, longest = DueRuns(sizes_of(tasks)), [], 0.0  # type: ignore[arg-type] # as above
        for pieces in division.tasks:
            together = 0.0
            for piece in pieces:
                began = time.process_time()
                for _ in self._windows.worker().answers(tasks[piece.begin : piece.end], self._loader(piece)):
                    pass
                busy = time.process_time() - began
                work = sizes.work(piece.begin, piece.end, piece.parts)
                done.append(PieceWork(piece.begin, piece.end, piece.part, work, busy))
                together += busy
            longest = max(longest, together)
        return Shown(longest, tuple(done))

    def _loader(self, piece: Piece) -> Callable[[Held], pa.Table]:
        query = self._query
        if piece.parts == 1 or not isinstance(query, DivisibleQuery):
            return lambda held: held.table
        return lambda held: query.part_of(held.table, piece.part, piece.parts)


def learned(state: LearnedWindows, *shown: Shown) -> LearnedWindows:
    """Return the state after a batch in which these pieces were measured."""
    pieces = tuple(piece for one in shown for piece in one.pieces)
    return POLICY.observe(state, BatchMeasurements((), 0.1, 1.0, exchanged=False, pieces=pieces))


def measure(case: Case, panes: Sequence[Held], learn: int, count: int) -> tuple[float, float, float, Division]:
    """Return the seconds of the busiest tasks of all measured batches: fixed, chosen, in hindsight; and the last division."""
    stream, state = Stream(case, panes), POLICY.init()
    seconds = np.zeros(3)
    division = Division(())
    stream.warm()
    for batch in range(learn + count):
        tasks = stream.tasks(batch)
        known = stream.to_divide(tasks)
        _, decision = POLICY.decide(state, known)
        division = decision.value
        if batch < learn:
            state = learned(state, stream.run(tasks, division))
            continue
        plain = fixed_division(known.sizes, known.place.runs, known.place.parts)
        fixed, chosen = stream.run(tasks, plain), stream.run(tasks, division)
        _, after = POLICY.decide(learned(state, fixed, chosen), known)
        best = stream.run(tasks, after.value)
        again = stream.run(tasks, plain), stream.run(tasks, division)
        seconds += [
            min(fixed.longest, again[0].longest),
            min(chosen.longest, again[1].longest),
            min(best.longest, stream.run(tasks, after.value).longest),
        ]
        state = learned(state, chosen)
    return float(seconds[0]), float(seconds[1]), float(seconds[2]), division


def lines_of(cases: Sequence[Case], learn: int, count: int, rows: int) -> Iterator[list[str]]:
    """Yield a line of the table for each case."""
    made: dict[tuple[str, int], list[Held]] = {}
    for case in cases:
        key = case.query, case.panes
        if key not in made:
            made = {key: panes_of(QUERIES[case.query], Windows(case.panes, 1), learn + count, rows)}
        fixed, chosen, best, division = measure(case, made[key], learn, count)
        parts = f"{len(division.tasks)} of {division.snapshot()['runs']}, {division.snapshot()['parts']}"
        times = [f"{seconds / count * 1e3:,.1f}" for seconds in (fixed, chosen)]
        yield [
            case.query,
            f"{case.panes}",
            f"{case.workers}",
            *times,
            f"{chosen / fixed:.2f}",
            f"{best / fixed:.2f}",
            parts,
        ]


HEAD: Final = (
    "query",
    "panes a window",
    "workers",
    "fixed, ms",
    "chosen, ms",
    "chosen / fixed",
    "hindsight / fixed",
    "tasks of runs, most parts",
)
CASES: Final = [Case(query, panes, workers) for query in QUERIES for panes in (1, 5, 30, 60) for workers in (4, 16)]
QUICK: Final = [Case(query, 5, 4) for query in QUERIES]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, one number of panes")
    given = parser.parse_args(argv)
    asked = lines_of(QUICK, 1, 1, 500) if given.quick else lines_of(CASES, LEARNED, MEASURED, ROWS)
    lines = []
    for line in asked:
        lines.append(line)
        print(*line, sep="  ", flush=True)
    return [Table("control.md", "window tasks", HEAD, lines)]


if __name__ == "__main__":
    main()
