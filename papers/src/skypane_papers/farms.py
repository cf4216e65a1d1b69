"""Paper 4's runs: its streams, the costs of its machine, and runs of its farm (sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import numpy as np

from skypane.operators.fronts import Front, NewPoints
from skypane.types import FloatArray
from skypane.workloads.content.points import anticorrelated, correlated, independent
from skypane_papers.sim.skyline_farm import Costs, Farm, Lives, Run, keeps_up, lives, simulate

SECOND: Final = 1_000_000
D: Final = 5
WORKERS: Final = 12
"""Workers on the paper's Intel machine, in addition to generator, emitter, collector and consumer."""
QUEUE: Final = 10_000

Draw = Callable[[int, int, np.random.Generator], FloatArray]
DRAWS: Final[dict[str, Draw]] = {
    "independent": independent,
    "anticorrelated": partial(anticorrelated, deviation=0.079),
    "correlated": partial(correlated, deviation=0.242),
}
"""The deviations give as many stored points as table II has; independent points have no parameter."""

STORED_COST: Final = {"independent": 20e-9, "anticorrelated": 12e-9, "correlated": 20e-9}
POINT_COST: Final = 0.5e-6
REDUCE_COST: Final = 0.5e-6
"""Costs of the paper's machine in seconds. The cost of a stored point is fitted to the numbers of workers in the text:
10 for anticorrelated points at 40K/s x 60 s (figure 10), and more than 12 for independent points at 100K/s x 10 s
(section 5.3). Push
and pop of a queue take a few hundred nanoseconds (section 4.2)."""


def costs(kind: str) -> Costs:
    """Return the costs of a distribution."""
    return Costs(POINT_COST, STORED_COST[kind], REDUCE_COST)


def points(kind: str, n: int, d: int = D, seed: int = 1) -> FloatArray:
    """Return (n, d) points of a distribution, C-ordered."""
    return np.ascontiguousarray(DRAWS[kind](n, d, np.random.default_rng(seed)))


@lru_cache(maxsize=3)
def stream(kind: str, rate: int, window: float, beyond: float = 0.5, d: int = D, *, seed: int = 0) -> Lives:
    """Return a stream that fills its window of `window` seconds and continues for the share `beyond` of a window."""
    return lives_at(points(kind, round(rate * window * (1 + beyond)), d, 1 + seed), rate, window)


def lives_at(some: FloatArray, rate: float, window: float) -> Lives:
    """Return the lives of points that arrive at a constant rate."""
    times = np.arange(len(some)) * SECOND / rate
    return lives(some, times.astype(np.int64), max(1, round(window * SECOND)))


def stored(kind: str, received: int, d: int = D, *, seed: int = 0) -> int:
    """Return the number of stored points, |DB|, for `received` points in a window, |W|; the mean over one window."""
    front, counts = Front(d, received), []
    draw, rng = DRAWS[kind], np.random.default_rng(2 + seed)
    part = max(1, received // 10)
    for first in range(0, 2 * received, part):
        times = np.arange(first, first + part)
        front.step(NewPoints(draw(part, d, rng), times, times), int(times[-1]) + 1)
        if times[-1] >= received:
            counts.append(len(front))
    return round(float(np.mean(counts)))


def run(
    kind: str,
    some: Lives,
    workers: int,
    owner: str = "LLW+",
    queue: int = QUEUE,
    *,
    asynchronous: bool = True,
    spent: Costs | None = None,
) -> Run:
    """Run a stream through a farm, with the costs of the paper's machine if no others are given."""
    return simulate(some, Farm(workers, queue, owner, asynchronous), spent or costs(kind))


def bandwidth(
    kind: str, some: Lives, workers: int, owner: str = "LLW+", *, asynchronous: bool = True, spent: Costs | None = None
) -> float:
    """Return the offered bandwidth in points per second, once the window is full."""
    return run(kind, some, workers, owner, asynchronous=asynchronous, spent=spent).bandwidth(since=0.75)


def sustained(
    kind: str,
    window: float,
    workers: int,
    d: int = D,
    draw: Callable[[int], FloatArray] | None = None,
    *,
    seed: int = 0,
) -> float:
    """Return the largest rate in points per second with which a farm keeps up, by bisection (section 6.3).

    draw   generator of another distribution: n -> points (n, d)
    """
    take = draw or (lambda n: points(kind, n, d, 1 + seed))

    def keeps(rate: float) -> bool:
        some = lives_at(take(round(rate * window * 1.3)), rate, window)
        return keeps_up(some, run(kind, some, workers, queue=100))

    low, high = _bracket(keeps, 20_000.0)
    while high / low > 1.02:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _bracket(keeps: Callable[[float], bool], rate: float) -> tuple[float, float]:
    """Return a rate with which the farm keeps up, and one, 1.5 times as large, with which it does not."""
    step = 1.5
    if keeps(rate):
        while keeps(rate * step):
            rate *= step
        return rate, rate * step
    while not keeps(rate / step):
        rate /= step
    return rate / step, rate
