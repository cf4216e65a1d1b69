"""Arrivals that a step can drop without comparing them: they are never on the front, and no update depends on them.

Let an early point e be stored when arrival p comes, and let a late point l come in the same step, not before p, with

    e dominates p, l dominates p, and l comes before e expires.

Then p is never on the front: it may not enter while e is in the window, and l has pruned it by then. Both e and l also
dominate all points that p dominates: l prunes those before it and bounds the stays of those after it more tightly than
p, and those in between are themselves dominated by e and l. All updates are therefore the same without p.

The search uses one strong e and one strong l for each piece of a step, in a few passes over its columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.types import BoolArray, FloatArray, IntArray, Micros

PIECE: Final = 8_192
"""Number of arrivals that share an early and a late point: few enough for the nearest caches."""

_LATE: Final = 512
"""Number of arrivals at the end of a piece from which the late point is chosen."""


class StrongPoint(NamedTuple):
    """A point that dominates many others, and its time of arrival."""

    point: FloatArray  # (d,)
    time: Micros


class Prefiltered(NamedTuple):
    """The mask of the arrivals that are never on the front, (n,), and a strong point so far, for the next step."""

    unseen: BoolArray
    strong: StrongPoint | None


def passing(points: FloatArray, times: IntArray, strong: StrongPoint | None, window: Micros) -> Prefiltered:
    """Find arrivals (n, d), in order of time, that are never on the front; `strong` is a point from before, if any."""
    n, d = points.shape
    unseen = np.zeros(n, np.bool_)
    scale = _scale(points)
    for begin in range(0, n, PIECE):
        end = min(n, begin + PIECE)
        from_late = max(begin, end - _LATE)
        at = from_late + int(np.argmin(_scores(points[from_late:end], scale)))
        late = StrongPoint(points[at], int(times[at]))
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
    return Prefiltered(unseen, strong)


def _scale(points: FloatArray) -> FloatArray:
    """Return a factor for each column that makes columns comparable in a sum."""
    some = points[:: max(1, len(points) // 512)]
    with np.errstate(invalid="ignore"):
        spread = some.max(axis=0) - some.min(axis=0)
        wide = (spread >= np.finfo(np.float64).tiny) & (spread < np.inf)
        return np.where(wide, 1 / np.where(wide, spread, 1), 0)


def _scores(points: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a score for each point: a low score suggests that the point dominates many others."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums: FloatArray = np.nan_to_num((points * scale).sum(axis=1), nan=np.inf)
    return sums


def _is_stronger(one: StrongPoint, other: StrongPoint, scale: FloatArray) -> bool:
    mine, theirs = _scores(np.stack([one.point, other.point]), scale)
    return bool(mine <= theirs)
