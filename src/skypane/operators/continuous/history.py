"""The history of a front over a table that is there as a whole: from when until when each row is part of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.operators.continuous.front import Arrivals, Front
from skypane.operators.continuous.updates import ADD
from skypane.types import FloatArray, IntArray, Micros


class Stays(NamedTuple):
    """Rows of a front and the span [start, end) of each, (n,) each, by row; what never enters has none."""

    rows: IntArray
    starts: IntArray
    ends: IntArray


def stays(points: FloatArray, times: IntArray, window: Micros) -> Stays:
    """Return when each of some points (n, d), arriving at `times` in microseconds, is on the front of a sliding window."""
    front = Front(points.shape[1], window)
    arrivals = Arrivals(points, times, np.arange(len(times)))
    last = int(times.max(initial=0))
    updates = front.step(arrivals, last + front.window + 1)
    order = np.argsort(updates.rows, kind="stable")  # of one row, ADD comes before DEL
    enters = updates.actions[order] == ADD
    return Stays(updates.rows[order][enters], updates.times[order][enters], updates.times[order][~enters])
