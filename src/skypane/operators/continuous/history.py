"""The history of a front over a table that is there as a whole: from when until when each row is part of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.operators.continuous.front import Arrivals, Front
from skypane.operators.continuous.groups import GroupedFronts
from skypane.operators.continuous.updates import ADD
from skypane.types import FloatArray, IntArray, Micros


class Stays(NamedTuple):
    """Rows of a front and the span [start, end) of each, (n,) each, by row; what never enters has none."""

    rows: IntArray
    starts: IntArray
    ends: IntArray


def stays(points: FloatArray, times: IntArray, window: Micros, groups: IntArray | None = None) -> Stays:
    """Return when each of some points (n, d), arriving at `times` in microseconds, is on the front of a sliding window.

    groups   a code for each point, (n,), if there is a front for each group
    """
    arrivals = Arrivals(points, times, np.arange(len(times)))
    until = int(times.max(initial=0)) + window + 1
    if groups is None:
        updates = Front(points.shape[1], window).step(arrivals, until)
    else:
        numbers = np.unique(groups, return_inverse=True)[1]
        updates = GroupedFronts(points.shape[1], window).step(arrivals, numbers, until)
    order = np.argsort(updates.rows, kind="stable")  # of one row, ADD comes before DEL
    enters = updates.actions[order] == ADD
    return Stays(updates.rows[order][enters], updates.times[order][enters], updates.times[order][~enters])
