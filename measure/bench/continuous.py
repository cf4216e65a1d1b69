"""The continuous skyline on one core, compared with the eager algorithm of paper 4 over arrays and over an R-tree.

    python -m measure.bench.continuous [--quick]

The peers process one arriving point after the other. All start from the points that are stored after one whole window,
process the same arrivals in turn, and must produce the same updates. Figures are medians over steps of this thread's
CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from measure.bench.continuous_peers import Arrays, Eager, Store, Tree
from measure.results.record import Found, Table
from skypane.kernels import warm
from skypane.operators.fronts import Front, FrontContents, GroupedFronts, NewPoints
from skypane.workloads.content.points import DISTRIBUTIONS
from skypane_papers.farms import DRAWS

SECOND: Final = 1_000_000
STEPS: Final = 21
PEERS: Final[dict[str, Callable[[FrontContents, int], Store]]] = {"eager in NumPy": Arrays, "eager in an R-tree": Tree}

_FITTED: Final = " as in table II"


class Case(NamedTuple):
    """A stream as in paper 4, table II: points a second, and seconds in the window."""

    kind: str
    d: int
    rate: int
    seconds: int


CASES: Final = (
    Case("independent", 5, 100_000, 10),
    Case("correlated", 5, 250_000, 60),
    Case("correlated" + _FITTED, 5, 250_000, 60),
    Case("anticorrelated", 5, 80_000, 10),
    Case("anticorrelated" + _FITTED, 5, 80_000, 10),
    Case("independent", 8, 20_000, 10),
    Case("anticorrelated", 8, 5_000, 10),
    Case("independent", 16, 2_000, 10),
)
GROUPS: Final = (10, 100, 1_000, 30_000)
GROUPED: Final = Case("independent", 5, 100_000, 10)


class Feed:
    """A stream of points at a steady rate."""

    def __init__(self, case: Case) -> None:
        self._case = case
        fitted = case.kind.endswith(_FITTED)
        self._draw = DRAWS[case.kind.removesuffix(_FITTED)] if fitted else DISTRIBUTIONS[case.kind]
        self._rng = np.random.default_rng(5)
        self._next = 0

    def take(self, n: int) -> NewPoints:
        """Return the next n points."""
        rows = np.arange(self._next, self._next + n)
        self._next += n
        return NewPoints(self._draw(n, self._case.d, self._rng), rows * SECOND // self._case.rate, rows)


def measure(case: Case, *, quick: bool) -> list[str]:
    """Fill one window, then time all in turn; return a line of the table."""
    feed = Feed(case)
    front = Front(case.d, case.seconds * SECOND)
    step = case.rate // 2 if not quick else case.rate // 10
    for _ in range(-(-case.rate * case.seconds // step)):
        arrivals = feed.take(step)
        front.step(arrivals, int(arrivals.times[-1]) + 1)
    stored = len(front)
    few = min(step, 2000, max(50, 20_000_000 // max(1, stored)))
    taken: dict[str, list[float]] = {name: [] for name in ("skypane", *PEERS)}
    for index in range(3 if quick else STEPS):
        arrivals = feed.take(step)
        begun, some = front.snapshot(), arrivals.at(slice(0, few))
        asked = [name for name in PEERS if index < 3 or PEERS[name] is not Tree]  # building a tree takes long
        told = {name: _timed(Eager(PEERS[name](begun, front.window), begun, front.window), some) for name in asked}
        began = time.thread_time()
        updates = front.step(arrivals, int(arrivals.times[-1]) + 1)
        taken["skypane"].append((time.thread_time() - began) / step)
        early = updates.times <= arrivals.times[few - 1]
        expected = list(zip(*(column[early].tolist() for column in updates), strict=True))
        for name, (seconds, theirs) in told.items():
            taken[name].append(seconds / few)
            assert sorted(theirs) == expected, name
    ours, *peers = (statistics.median(seconds) for seconds in taken.values())
    return [
        f"{case.d} {case.kind}",
        f"{case.rate:,} x {case.seconds} s",
        f"{stored:,}",
        f"{1 - stored / (case.rate * case.seconds):.4f}",
        f"{1e-6 / ours:.2f} M",
        *(f"{1 / peer:,.0f} ({peer / ours:,.0f})" for peer in peers),
    ]


def _timed(eager: Eager, arrivals: NewPoints) -> tuple[float, list[tuple[int, int, int]]]:
    began = time.thread_time()
    told = eager.run(np.ascontiguousarray(arrivals.points), arrivals.times, arrivals.rows)
    return time.thread_time() - began, told


def grouped(groups: int, *, quick: bool) -> list[str]:
    """Fill one window of a stream whose points belong to groups at random, then time steps; return a line of the table."""
    case, rng = GROUPED, np.random.default_rng(6)
    feed, fronts = Feed(case), GroupedFronts(case.d, case.seconds * SECOND)
    step = case.rate // 2
    filling = -(-case.rate * case.seconds // step)
    taken = []
    for _ in range(3 if quick else filling + STEPS):
        arrivals, codes = feed.take(step), rng.integers(0, groups, step)
        began = time.thread_time()
        fronts.step(arrivals._replace(groups=codes), int(arrivals.times[-1]) + 1)
        taken.append((time.thread_time() - began) / step)
    seconds = statistics.median(taken[-3:] if quick else taken[-STEPS:])
    return [f"{groups:,}", f"{len(fronts):,}", f"{len(fronts) / groups:,.0f}", f"{1e-6 / seconds:.2f} M"]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and short steps")
    quick = parser.parse_args(argv).quick
    warm(print)
    peers = [f"{name} (times slower)" for name in PEERS]
    head = ["criteria, points", "stream", "stored", "pruning probability", "skypane, points/s", *peers]
    lines = []
    for case in CASES:
        lines.append(measure(case, quick=quick))
        print(*lines[-1], sep="  ", flush=True)
    by_group = []
    for groups in GROUPS:
        by_group.append(grouped(groups, quick=quick))
        print(*by_group[-1], sep="  ", flush=True)
    page = "bench-continuous.md"
    groups_head = ["groups", "stored", "of each", "points/s"]
    return [Table(page, "continuous", head, lines), Table(page, "groups", groups_head, by_group)]


if __name__ == "__main__":
    main()
