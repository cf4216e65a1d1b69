"""Arrivals that come and go unseen within one step: left out, they make no difference, and need not be compared.

Let an early point e be stored when arrival p comes, and a late one l come in the same step, not before p, with

    e dominates p, l dominates p, and l comes before e expires.

Then p is never on the front: it may not enter while e is in the window, and l has pruned it by then. And whatever p
dominates, both dominate, too: l prunes those before it, and bounds the stays of those after it more tightly than p, and those in
between are themselves dominated by e and l. So all updates are the same without p.

It is worth looking for such arrivals with one strong e and l for each piece of a step, in a few passes over its columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.types import BoolArray, FloatArray, IntArray, Micros

PIECE: Final = 8_192
"""Arrivals that share an early and a late point: few enough for the nearest caches."""

_LATE: Final = 512
"""Arrivals at the end of a piece among which the late point is looked for."""


class Strong(NamedTuple):
    """A point that dominates much, and when it came."""

    point: FloatArray  # (d,)
    time: Micros


class Passing(NamedTuple):
    """Which arrivals come and go unseen, (n,), and a strong one of those seen so far, for the next step."""

    unseen: BoolArray
    strong: Strong | None


def passing(points: FloatArray, times: IntArray, strong: Strong | None, window: Micros) -> Passing:
    """Look for arrivals (n, d), in order of time, that come and go unseen; `strong` is a point from before, if there is one."""
    n, d = points.shape
    unseen = np.zeros(n, np.bool_)
    scale = _scale(points)
    for begin in range(0, n, PIECE):
        end = min(n, begin + PIECE)
        from_late = max(begin, end - _LATE)
        at = from_late + int(np.argmin(_scores(points[from_late:end], scale)))
        late = Strong(points[at], int(times[at]))
        if strong is not None and strong.time + window >= late.time:
            bound = np.maximum(strong.point, late.point)
            worse, equal = np.ones((2, at - begin), np.bool_)
            for j in range(d):
                column = points[begin:at, j]
                worse &= column >= bound[j]
                equal &= column == bound[j]
            unseen[begin:at] = worse & ~equal
        if strong is None or strong.time + window < times[end - 1] or _is_stronger(late, strong, scale):
            strong = late
    return Passing(unseen, strong)


def _scale(points: FloatArray) -> FloatArray:
    """Return a factor for each column by which columns can be added up."""
    some = points[:: max(1, len(points) // 512)]
    with np.errstate(invalid="ignore"):
        spread = some.max(axis=0) - some.min(axis=0)
        wide = (spread >= np.finfo(np.float64).tiny) & (spread < np.inf)
        return np.where(wide, 1 / np.where(wide, spread, 1), 0)


def _scores(points: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a number for each point: the less, the more it dominates, or so one may guess."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums: FloatArray = np.nan_to_num((points * scale).sum(axis=1), nan=np.inf)
    return sums


def _is_stronger(one: Strong, other: Strong, scale: FloatArray) -> bool:
    mine, theirs = _scores(np.stack([one.point, other.point]), scale)
    return bool(mine <= theirs)
