"""The history of a front over a complete table: the span in which each row is on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.operators.fronts.front import Front, NewPoints
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.updates import ADD
from skypane.types import FloatArray, IntArray, Micros


class Stays(NamedTuple):
    """Rows of a front and the span [start, end) of each, (n,) each, by row; rows that never enter are left out."""

    rows: IntArray
    starts: IntArray
    ends: IntArray


def stays(points: FloatArray, times: IntArray, window: Micros, groups: IntArray | None = None) -> Stays:
    """Return when each of the points (n, d), arriving at `times` in microseconds, is on the front of a sliding window.

    groups   a code for each point, (n,), if each group has its own front
    """
    arrivals = NewPoints(points, times, np.arange(len(times)))
    until = int(times.max(initial=0)) + window + 1
    if groups is None:
        updates = Front(points.shape[1], window).step(arrivals, until)
    else:
        numbers = np.unique(groups, return_inverse=True)[1]
        updates = GroupedFronts(points.shape[1], window).step(arrivals, numbers, until)
    order = np.argsort(updates.rows, kind="stable")  # of one row, ADD comes before DEL
    enters = updates.actions[order] == ADD
    return Stays(updates.rows[order][enters], updates.times[order][enters], updates.times[order][~enters])
