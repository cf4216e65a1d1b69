"""Paper 4's runs: its streams, the costs of its machine, and how its farm does with them (sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import numpy as np

from skypane.operators.continuous import Arrivals, Front
from skypane.runtime.sim.skyline_farm import Costs, Farm, Lives, Run, keeps_up, lives, simulate
from skypane.types import FloatArray
from skypane.workloads.content.points import anticorrelated, correlated, independent

SECOND: Final = 1_000_000
D: Final = 5
WORKERS: Final = 12
"""Of the paper's Intel machine, beside generator, emitter, collector and consumer."""
QUEUE: Final = 10_000

Draw = Callable[[int, int, np.random.Generator], FloatArray]
DRAWS: Final[dict[str, Draw]] = {
    "independent": independent,
    "anticorrelated": partial(anticorrelated, deviation=0.079),
    "correlated": partial(correlated, deviation=0.242),
}
"""Deviations with which as many points are stored as table II has; independent points leave nothing to choose."""

STORED_COST: Final = {"independent": 20e-9, "anticorrelated": 12e-9, "correlated": 20e-9}
POINT_COST: Final = 0.5e-6
REDUCE_COST: Final = 0.5e-6
"""Seconds of the paper's machine. For a stored point, fitted where its text says how many workers are needed: 10 for
anticorrelated points, 40K/s x 60 s (figure 10); more than 12 for independent ones, 100K/s x 10 s (section 5.3). A queue's push
and pop take a few hundred nanoseconds (section 4.2)."""


def costs(kind: str) -> Costs:
    """Return the costs of a distribution."""
    return Costs(POINT_COST, STORED_COST[kind], REDUCE_COST)


def points(kind: str, n: int, d: int = D, seed: int = 1) -> FloatArray:
    """Return (n, d) points of a distribution, C-ordered."""
    return np.ascontiguousarray(DRAWS[kind](n, d, np.random.default_rng(seed)))


@lru_cache(maxsize=3)
def stream(kind: str, rate: int, window: float, beyond: float = 0.5, d: int = D) -> Lives:
    """Return a stream that fills its window of `window` seconds, and goes on for the share `beyond` of one."""
    return lives_at(points(kind, round(rate * window * (1 + beyond)), d), rate, window)


def lives_at(some: FloatArray, rate: float, window: float) -> Lives:
    """Return the lives of points that come at a steady rate."""
    times = np.arange(len(some)) * SECOND / rate
    return lives(some, times.astype(np.int64), max(1, round(window * SECOND)))


def stored(kind: str, received: int, d: int = D) -> int:
    """Return how many points are stored when so many are received in a window, |DB| of |W|: the mean over one window."""
    front, counts = Front(d, received), []
    draw, rng = DRAWS[kind], np.random.default_rng(2)
    part = max(1, received // 10)
    for first in range(0, 2 * received, part):
        times = np.arange(first, first + part)
        front.step(Arrivals(draw(part, d, rng), times, times), int(times[-1]) + 1)
        if times[-1] >= received:
            counts.append(len(front))
    return round(float(np.mean(counts)))


def run(
    kind: str, some: Lives, workers: int, owner: str = "LLW+", queue: int = QUEUE, *, asynchronous: bool = True
) -> Run:
    """Run a stream through a farm of the paper's machine."""
    return simulate(some, Farm(workers, queue, owner, asynchronous), costs(kind))


def bandwidth(kind: str, some: Lives, workers: int, owner: str = "LLW+", *, asynchronous: bool = True) -> float:
    """Return the offered bandwidth in points a second, once the window is full."""
    return run(kind, some, workers, owner, asynchronous=asynchronous).bandwidth(since=0.75)


def sustained(
    kind: str, window: float, workers: int, d: int = D, draw: Callable[[int], FloatArray] | None = None
) -> float:
    """Return the largest rate that a farm keeps up with, points a second, by bisection (section 6.3).

    draw   points of another distribution; how many -> (n, d)
    """
    take = draw or (lambda n: points(kind, n, d))

    def keeps(rate: float) -> bool:
        some = lives_at(take(round(rate * window * 1.3)), rate, window)
        return keeps_up(some, run(kind, some, workers, queue=100))

    low, high = _bracket(keeps, 20_000.0)
    while high / low > 1.02:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _bracket(keeps: Callable[[float], bool], rate: float) -> tuple[float, float]:
    """Return a rate that is kept up with and one, at most half as large again, that is not."""
    step = 1.5
    if keeps(rate):
        while keeps(rate * step):
            rate *= step
        return rate, rate * step
    while not keeps(rate / step):
        rate /= step
    return rate / step, rate
