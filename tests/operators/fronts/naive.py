"""The continuous skyline by its definition: the front at every instant at which it could change, and what differs."""

from __future__ import annotations

import numpy as np
from tests.operators.fronts.eager import Update
from tests.oracles import dominators, skyline_indices

from skypane.operators.fronts.front_operator import ADD, DEL


def fronts(points, times, window):
    """Yield (time, rows of the front) at every arrival and every expiry, in order of time."""
    for now in sorted({*times.tolist(), *(times + window).tolist()}):
        there = np.flatnonzero((times <= now) & (now < times + window))
        yield now, {int(there[i]) for i in skyline_indices(points[there])}


def updates(points, times, window):
    """All updates, in the order that the package states."""
    changes = []
    before: set[int] = set()
    for now, front in fronts(points, times, window):
        changes += [Update(now, DEL, row) for row in before - front]
        changes += [Update(now, ADD, row) for row in front - before]
        before = front
    return sorted(changes)


def all_pairs(points, times, window):
    """SIT and prune time of each point by comparing all pairs, then the updates: for thousands of points."""
    updates, columns = [], np.asfortranarray(points)
    for row, (point, time) in enumerate(zip(points, times, strict=True)):
        better = np.flatnonzero(dominators(columns, point))
        earlier = times[better[better < row]]
        later = times[better[better > row]]
        start = max(time, earlier.max(initial=-(2**62)) + window)
        end = min(later.min(initial=2**62), time + window)
        if start < end:
            updates += [Update(int(start), ADD, row), Update(int(end), DEL, row)]
    return sorted(updates)
