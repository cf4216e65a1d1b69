"""Measure a step of a front: whole, in shards that stay in threads of the driver, and in shards without state.

    python -m measure.bench.front_shards [--quick]

Points are drawn near a plane, so that most of those in the window are stored, and as many expire in a step as come.
Shards run one after the other here, and CPU clocks measure them, so that other work on the machine moves the
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
from functools import partial
from statistics import mean
from typing import Any, Final

import numpy as np

from measure.results.record import Found, Table
from skypane.operators.fronts import Front, FrontContents, FrontOperator, NewPoints
from skypane.operators.fronts.resident_fronts import ResidentFront
from skypane.operators.fronts.sharded_fronts import ShardedFront
from skypane.operators.fronts.shards import ShardPlan, compare_in_shard
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.shard_stage import round_trip
from skypane.types import FloatArray

CASES: Final = (
    (5, 10_000, 20_000),
    (8, 10_000, 2_000),
    (8, 25_000, 20_000),
    (8, 100_000, 20_000),
    (8, 100_000, 100_000),
    (8, 100_000, 400_000),
)
"""Criteria, points in the window, arrivals of a step."""
NOISE: Final = 0.25
"""Standard deviation of the distance to the plane, along the last criterion."""
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


def near_a_plane(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return points (n, d) whose last criterion offsets the sum of the others, but for some noise."""
    points = rng.random((n, d))
    points[:, -1] = rng.normal(0, NOISE, n) - points[:, :-1].sum(axis=1)
    return points


def stream(d: int, stored: int, coming: int, steps: int) -> tuple[FrontContents, list[tuple[NewPoints, int]]]:
    """Return what a front has stored after `stored` points, and the arrivals of each of `steps` steps, with its clock."""
    rng, numbers = np.random.default_rng(3), np.arange(stored)
    front = Front(d, stored)
    front.step(NewPoints(near_a_plane(stored, d, rng), numbers, numbers), stored)
    batches = []
    for first in range(stored, stored + steps * coming, coming):
        numbers = np.arange(first, first + coming)
        batches.append((NewPoints(near_a_plane(coming, d, rng), numbers, numbers), first + coming))
    return front.snapshot(), batches


def milliseconds(front: FrontOperator, batches: Sequence[tuple[NewPoints, int]], clock: Clock | None = None) -> float:
    """Return the mean CPU milliseconds of a step on the critical path; the first step is left out."""
    spent = []
    for arrivals, until in batches:
        before, began = 0.0 if clock is None else clock.beyond, time.process_time()
        front.step(arrivals, until)
        spent.append(time.process_time() - began - (0.0 if clock is None else clock.beyond - before))
    return mean(spent[1:]) * 1e3


def files(stored: FrontContents, shards: int) -> float:
    """Return the CPU milliseconds in which points are written for their shards, and one shard reads its own."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        store = DocumentStore.at(folder)
        round_trip(store, stored.at(slice(10)))  # what is loaded once
        began = time.process_time()
        round_trip(store, stored)
        whole = time.process_time() - began
        began = time.process_time()
        round_trip(store, stored.at(slice(None, None, shards)))
        return (whole + time.process_time() - began) * 1e3


def line(case: tuple[int, int, int], shards: int, steps: int) -> list[str]:
    """Return a line of the table."""
    d, window, coming = case
    begin, batches = stream(d, window, coming, steps)
    whole = milliseconds(Front.restore(begin, window), batches)
    clock = Clock()
    resident = milliseconds(ResidentFront(begin, window, ShardPlan(shards, in_place=clock)), batches, clock)
    clock = Clock()
    plan = ShardPlan(shards, partial(clock, compare_in_shard))
    stateless = milliseconds(ShardedFront(begin, window, plan), batches, clock)
    found = [
        f"{d}", f"{len(begin.rows):,}", f"{coming:,}", f"{shards}", f"{whole:.0f} ms",
        f"{resident:.0f} ms ({whole / resident:.1f})", f"{stateless:.0f} ms", f"{files(begin, shards):.0f} ms",
    ]  # fmt: skip
    print(*found, sep="  ", flush=True)
    return found


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small cases, few batches")
    quick = parser.parse_args(argv).quick
    lines = [line(case, shards, 3 if quick else 7) for case in (CASES[:2] if quick else CASES) for shards in SHARDS]
    head = ["criteria", "stored", "rows that come", "shards", "whole", "in threads (times faster)",
            "without state", "its files"]  # fmt: skip
    return [Table("bench-continuous.md", "front-shards", head, lines)]


if __name__ == "__main__":
    main()
