"""The continuous skyline, one core, against the eager algorithm of paper 4 over NumPy arrays, from the same state on.

    python -m bench.continuous [--quick]

The peer keeps DB as the paper does, in arrays by attribute, and scans them once per arriving point: which points does it
dominate, and which is the youngest that dominates it. Both start from the points that are stored after one whole window,
take the same arrivals in turn, and must tell the same updates. Figures are medians over steps of this thread's CPU time.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from bench.record import markdown_table, replace_between
from skypane.kernels import warm
from skypane.operators.continuous import ADD, DEL, Arrivals, Front, Stored
from skypane.types import FloatArray
from skypane.workloads.content.points import DISTRIBUTIONS

SECOND: Final = 1_000_000
STEPS: Final = 21


class Case(NamedTuple):
    """A stream as in paper 4, table II: points a second, and seconds in the window."""

    kind: str
    d: int
    rate: int
    seconds: int


CASES: Final = (
    Case("independent", 5, 100_000, 10),
    Case("correlated", 5, 250_000, 60),
    Case("anticorrelated", 5, 80_000, 10),
    Case("independent", 8, 20_000, 10),
    Case("anticorrelated", 8, 5_000, 10),
)


class EagerArrays:
    """The eager algorithm tuple at a time, its DB in NumPy arrays with a free list, its EL a heap."""

    def __init__(self, stored: Stored, window: int) -> None:
        n, d = stored.points.shape
        self.window = window
        self.values = np.full((d, 2 * n + 1024), np.nan)  # a NaN compares false: an empty place dominates none
        self.expires = np.zeros(2 * n + 1024, np.int64)
        self.rows = np.full(2 * n + 1024, -1)
        self.values[:, :n] = stored.points.T
        self.expires[:n] = stored.times + window
        self.rows[:n] = stored.rows
        self.free = list(range(n, 2 * n + 1024))
        self.events = [(int(e), 0, i, int(self.rows[i])) for i, e in enumerate(self.expires[:n])]
        waits = np.flatnonzero(stored.starts >= stored.clock)
        self.events += [(int(stored.starts[i]), 1, int(i), int(self.rows[i])) for i in waits]
        self.waiting = {int(self.rows[i]) for i in waits}
        heapq.heapify(self.events)

    def arrive(self, point: FloatArray, now: int, row: int) -> Iterator[tuple[int, int, int]]:
        """Yield the updates that time and this point bring."""
        yield from self.advance(now + 1)
        below = np.ones(len(self.rows), np.bool_)
        above = np.ones(len(self.rows), np.bool_)
        for x, column in zip(point, self.values, strict=True):
            below &= column <= x
            above &= column >= x
        equal = below & above
        for i in np.flatnonzero(above & ~equal):
            if int(self.rows[i]) not in self.waiting:
                yield now, DEL, int(self.rows[i])
            self._remove(int(i))
        critical = int(self.expires[below & ~equal].max(initial=now))
        at = self.free.pop()
        self.values[:, at], self.expires[at], self.rows[at] = point, now + self.window, row
        heapq.heappush(self.events, (now + self.window, 0, at, row))
        if critical > now:
            self.waiting.add(row)
            heapq.heappush(self.events, (critical, 1, at, row))
        else:
            yield now, ADD, row

    def advance(self, until: int) -> Iterator[tuple[int, int, int]]:
        """Yield the updates before `until` that time alone brings."""
        while self.events and self.events[0][0] < until:
            at_time, kind, at, row = heapq.heappop(self.events)
            if self.rows[at] != row:
                continue
            if kind:
                self.waiting.discard(row)
                yield at_time, ADD, row
            else:
                self._remove(at)
                yield at_time, DEL, row

    def _remove(self, at: int) -> None:
        self.waiting.discard(int(self.rows[at]))
        self.values[:, at], self.rows[at] = np.nan, -1
        self.free.append(at)


class Feed:
    """A stream of points at a steady rate."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._rng = np.random.default_rng(5)
        self._next = 0

    def take(self, n: int) -> Arrivals:
        """Return the next n points."""
        rows = np.arange(self._next, self._next + n)
        self._next += n
        points = DISTRIBUTIONS[self._case.kind](n, self._case.d, self._rng)
        return Arrivals(points, rows * SECOND // self._case.rate, rows)


def measure(case: Case, *, quick: bool) -> list[str]:
    """Fill one window, then time both in turn; return a line of the table."""
    feed = Feed(case)
    front = Front(case.d, case.seconds * SECOND)
    step = case.rate // 2 if not quick else case.rate // 10
    for _ in range(-(-case.rate * case.seconds // step)):
        arrivals = feed.take(step)
        front.step(arrivals, int(arrivals.times[-1]) + 1)
    stored = front.snapshot()
    few = min(step, 2000, max(50, 20_000_000 // max(1, len(front))))
    ours, theirs = [], []
    for _ in range(3 if quick else STEPS):
        arrivals = feed.take(step)
        until = int(arrivals.times[-1]) + 1
        peer = EagerArrays(front.snapshot(), front.window)
        began = time.thread_time()
        expected: list[tuple[int, int, int]] = []
        for i in range(few):
            expected += peer.arrive(arrivals.points[i], int(arrivals.times[i]), int(arrivals.rows[i]))
        theirs.append((time.thread_time() - began) / few)
        began = time.thread_time()
        updates = front.step(arrivals, until)
        ours.append((time.thread_time() - began) / step)
        early = updates.times <= arrivals.times[few - 1]
        assert sorted(expected) == list(zip(*(column[early].tolist() for column in updates), strict=True))
    a, b = statistics.median(ours), statistics.median(theirs)
    prune = 1 - len(stored.rows) / (case.rate * case.seconds)
    return [
        f"{case.d} {case.kind}",
        f"{case.rate:,} x {case.seconds} s",
        f"{len(stored.rows):,}",
        f"{prune:.4f}",
        f"{1e-6 / a:.2f} M",
        f"{1e-6 / b:.4f} M",
        f"{b / a:,.0f}",
    ]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and short steps, nothing recorded")
    quick = parser.parse_args().quick
    warm(print)
    head = [
        "criteria, points",
        "stream",
        "stored",
        "pruning probability",
        "skypane, points/s",
        "eager in NumPy",
        "ratio",
    ]
    lines = []
    for case in CASES:
        lines.append(measure(case, quick=quick))
        print(*lines[-1], sep="  ", flush=True)
    if not quick:
        replace_between(Path("docs/bench-continuous.md"), "continuous", markdown_table(head, lines))


if __name__ == "__main__":
    main()
