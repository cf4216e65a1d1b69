"""The batch skyline kernel compared with its peers, in turn, on the same points.

    python -m measure.bench.kernels [--quick]

Peers are paretoset (with Numba), moocore (C), and BNL: block nested loops that compare one tuple at a time with a
window of skyline tuples, as stream workers usually do (paper 1, section 2.2), compiled by Numba to the equivalent of
plain C. Figures are medians of the CPU time of this thread, which waiting for the machine does not change. A peer that
took longer than 0.3 s is not run on larger sets of the same kind.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import moocore
import numpy as np
import paretoset
from numba import njit

from measure.results.record import Found, Table
from skypane.kernels import skyline_indices, warm
from skypane.types import BoolArray, FloatArray, IntArray
from skypane.workloads.content.points import DISTRIBUTIONS, independent

TOO_LONG: Final = 0.3
BUDGET: Final = 2.0
"""Seconds for the repetitions of one contestant on one set of points; three at least."""

_PANE: Final = 10_000


@njit
def bnl_mask(points: FloatArray) -> BoolArray:
    """Skyline mask of (n, d) C-ordered points, by block nested loops over a window of copied tuples."""
    n, d = points.shape
    window = np.empty((n, d))
    row_of = np.empty(n, np.int64)
    size = 0
    for i in range(n):
        dominated = False
        w = 0
        while w < size and not dominated:
            less = False
            more = False
            for j in range(d):
                if window[w, j] < points[i, j]:
                    less = True
                elif window[w, j] > points[i, j]:
                    more = True
                if less and more:
                    break
            if less and not more:
                dominated = True
            elif more and not less:
                size -= 1
                window[w] = window[size]
                row_of[w] = row_of[size]
            else:
                w += 1
        if not dominated:
            window[size] = points[i]
            row_of[size] = i
            size += 1
    mask = np.zeros(n, np.bool_)
    mask[row_of[:size]] = True
    return mask


class Contestant(NamedTuple):
    """A way to find skyline rows, on points in the memory order that suits it."""

    name: str
    rows: Callable[[FloatArray], IntArray]
    order: Callable[[Any], FloatArray] = np.ascontiguousarray


SKYPANE: Final = Contestant("skypane", skyline_indices, np.asfortranarray)
PEERS: Final = (
    Contestant("paretoset", lambda p: np.flatnonzero(paretoset.paretoset(p, distinct=False, use_numba=True))),
    Contestant("moocore", lambda p: np.flatnonzero(moocore.is_nondominated(p, keep_weakly=True))),
    Contestant("BNL", lambda p: np.flatnonzero(bnl_mask(p))),
)


class Case(NamedTuple):
    """Points, and the kind of case whose growth decides which peers are still asked."""

    kind: str
    points: FloatArray


def cases(*, quick: bool) -> Iterator[Case]:
    """Panes and larger sets of each distribution, and the merge of five panes' skylines, as a window query sees it."""
    for d in (4, 8) if quick else (2, 4, 6, 8, 10, 12):
        for name, draw in DISTRIBUTIONS.items():
            for n in (_PANE,) if quick else (_PANE, 100_000, 1_000_000)[: 3 if d <= 8 else 2]:
                yield Case(f"{d} {name}", draw(n, d, np.random.default_rng(n + d)))
        panes = [independent(_PANE, d, np.random.default_rng(seed)) for seed in range(5)]
        merged = np.concatenate([pane[skyline_indices(pane)] for pane in panes])
        yield Case(f"{d} merge of 5 panes", np.asfortranarray(merged))


def times(contestants: Sequence[Contestant], points: FloatArray) -> tuple[list[float], int]:
    """Return each one's median seconds, all asked in turn, and the skyline's size; assert that they agree."""
    assert np.isfinite(points).all(), "moocore crashes where a value is minus infinity, with 3 and 4 criteria"
    ready = [(one, one.order(points)) for one in contestants]
    expected = skyline_indices(points)
    taken: list[list[float]] = [[] for _ in ready]
    while len(taken[0]) < 3 or (sum(taken[0]) < BUDGET / 20 and len(taken[0]) < 200):
        for (one, p), seconds in zip(ready, taken, strict=True):
            if len(seconds) >= 1 and sum(seconds) > BUDGET:
                continue
            began = time.thread_time()
            rows = one.rows(p)
            seconds.append(time.thread_time() - began)
            assert np.array_equal(rows, expected), one.name
    return [statistics.median(seconds) for seconds in taken], len(expected)


def compiled() -> None:
    """Let everyone compile before the clock runs."""
    warm(print)
    for peer in PEERS:
        peer.rows(np.random.default_rng(0).random((100, 2)))


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="panes only")
    arguments = parser.parse_args(argv)
    compiled()
    head = ["criteria, points", "rows", "skyline", "skypane", *(f"/ {peer.name}" for peer in PEERS)]
    print(*head, sep="  ")
    lines, slow = [], set()
    for case in cases(quick=arguments.quick):
        asked = [peer for peer in PEERS if (peer.name, case.kind) not in slow]
        seconds, size = times([SKYPANE, *asked], case.points)
        of_peer = dict(zip([peer.name for peer in asked], seconds[1:], strict=True))
        slow |= {(name, case.kind) for name, taken in of_peer.items() if taken > TOO_LONG}
        ratios = [f"{of_peer[p.name] / seconds[0]:.1f}" if p.name in of_peer else "-" for p in PEERS]
        lines.append([case.kind, f"{len(case.points):,}", f"{size:,}", f"{1e3 * seconds[0]:.3f} ms", *ratios])
        print(*lines[-1], sep="  ", flush=True)
    return [Table("bench-kernels.md", "kernels", head, lines)]


if __name__ == "__main__":
    main()
