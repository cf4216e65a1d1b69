"""The continuous skyline by its definition: the front at every instant at which it could change, and what differs."""

from __future__ import annotations

import numpy as np
from tests.differential.definition.continuous import stays, updates_of
from tests.operators.fronts.eager import Update
from tests.oracles import skyline_indices

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
    """The updates from the stay of each point, by comparing all pairs: for thousands of points."""
    numbers = np.arange(len(times))
    starts, ends = stays(points, np.zeros_like(numbers), times, window)
    return [Update(*one) for one in updates_of(numbers, starts, ends, 2**62).tolist()]
