"""What a step of a front costs whole, in shards that stay in threads of the driver, and in shards without state.

    python -m measure.bench.front_shards [--quick]

Shards run one after the other here, and CPU clocks tell what they take, so that other work on the machine moves the
figures little. The critical path of a step is the CPU time outside of the shards and that of the slowest shard of each
part of the step: what the step lasts where every shard has a core. Shards without state also get their points in files,
and their index is built in each step; the overhead of the Spark job that runs them, Costs.job, comes on top.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from measure.tables import markdown_table, replace_between
from skypane.operators.fronts import Front, FrontContents, FrontOperator, NewPoints
from skypane.operators.fronts.resident_fronts import ResidentFront
from skypane.operators.fronts.sharded_fronts import ShardedFront
from skypane.operators.fronts.shards import ShardPlan, compare_in_shard
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.shard_stage import round_trip
from skypane.types import IntArray
from skypane_papers.farms import DRAWS

WINDOW: Final = 10**12
"""No point expires: what is stored changes only as points are pruned."""
CASES: Final = (
    (5, "anticorrelated", 15_000, 100_000),
    (8, "anticorrelated", 25_000, 20_000),
    (8, "anticorrelated", 100_000, 20_000),
    (8, "anticorrelated", 100_000, 100_000),
    (8, "anticorrelated", 100_000, 500_000),
)
"""Criteria, distribution, points stored, rows of a batch, of which the lift keeps those that may enter."""
SHARDS: Final = (2, 4)


@dataclass
class Clock:
    """Runs shards in turn as map() does; `beyond` has the CPU seconds of all but the slowest shard of each call."""

    beyond: float = 0.0

    def __call__(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        busy, results = [], []
        for each in zip(*arguments, strict=True):
            began = time.process_time()
            results.append(function(*each))
            busy.append(time.process_time() - began)
        self.beyond += sum(busy) - max(busy)
        return iter(results)


class Stream:
    """Points in order of time; `stored` of them are on the front, or may enter it, when the batches begin."""

    def __init__(self, d: int, kind: str, stored: int) -> None:
        self._draw, self._d = DRAWS[kind], d
        self._rng = np.random.default_rng(3)
        self._time = self._row = 0
        front = Front(d, WINDOW)
        while len(front) < stored:
            front.step(self._points(20_000), self._time)
        self.begin = front.snapshot()

    def lifted(self, rows: int) -> tuple[NewPoints, int]:
        """Return the points of the next `rows` rows that a lift keeps, and the clock after them."""
        arrivals, front = self._points(rows), Front(self._d, WINDOW)
        front.step(arrivals, self._time)
        kept: IntArray = np.searchsorted(arrivals.rows, front.kept())
        return arrivals.at(kept), self._time

    def _points(self, n: int) -> NewPoints:
        numbers = np.arange(self._row, self._row + n)
        self._row, self._time = self._row + n, self._time + n
        return NewPoints(np.ascontiguousarray(self._draw(n, self._d, self._rng)), numbers, numbers)


def milliseconds(front: FrontOperator, batches: Sequence[tuple[NewPoints, int]], clock: Clock | None = None) -> float:
    """Return the median CPU milliseconds of a step on the critical path; the first step is left out."""
    spent = []
    for arrivals, until in batches:
        before, began = 0.0 if clock is None else clock.beyond, time.process_time()
        front.step(arrivals, until)
        spent.append(time.process_time() - began - (0.0 if clock is None else clock.beyond - before))
    return median(spent[1:]) * 1e3


def files(stored: FrontContents, shards: int) -> float:
    """Return the CPU milliseconds in which points are written for their shards, and one shard reads its own."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        store = DocumentStore.at(folder)
        began = time.process_time()
        round_trip(store, stored)
        whole = time.process_time() - began
        began = time.process_time()
        round_trip(store, stored.at(slice(None, None, shards)))
        return (whole + time.process_time() - began) * 1e3


def line(case: tuple[int, str, int, int], shards: int, *, quick: bool) -> list[str]:
    """Return a line of the table."""
    d, kind, stored, rows = case
    stream = Stream(d, kind, stored)
    batches = [stream.lifted(rows) for _ in range(3 if quick else 6)]
    whole = milliseconds(Front.restore(stream.begin, WINDOW), batches)
    clock = Clock()
    resident = milliseconds(ResidentFront(stream.begin, WINDOW, ShardPlan(shards, in_place=clock)), batches, clock)
    clock = Clock()
    run = lambda requests: clock(compare_in_shard, requests)  # noqa: E731 - the plan's function
    stateless = milliseconds(ShardedFront(stream.begin, WINDOW, ShardPlan(shards, run)), batches, clock)
    coming = round(float(np.mean([len(arrivals.rows) for arrivals, _ in batches])))
    found = [
        f"{d} {kind}", f"{len(stream.begin.rows):,}", f"{coming:,}", f"{shards}", f"{whole:.0f} ms",
        f"{resident:.0f} ms ({whole / resident:.1f})", f"{stateless:.0f} ms", f"{files(stream.begin, shards):.0f} ms",
    ]  # fmt: skip
    print(*found, sep="  ", flush=True)
    return found


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few batches, nothing recorded")
    quick = parser.parse_args().quick
    lines = [line(case, shards, quick=quick) for case in CASES for shards in SHARDS]
    head = ["criteria, points", "stored", "rows that come", "shards", "whole", "in threads (times faster)",
            "without state", "its files"]  # fmt: skip
    table = markdown_table(head, lines)
    if not quick:
        replace_between(Path("docs/bench-continuous.md"), "front-shards", table)


if __name__ == "__main__":
    main()
