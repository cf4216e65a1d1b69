"""The continuous skyline: from when until when each row is on the front, from all pairs of rows.

A row counts during [t, t + w). It is on the front while no row that is better counts: from the moment at which the last one that
came no later has gone, until the first one that came later. Emitted are ADD where a stay begins, DEL where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.differential.case import IntArray
from tests.differential.definition.preference import better

ADD, DEL = 1, -1
_NEVER = 2**62
_BLOCK = 256


def stays(points: IntArray, groups: IntArray, times: IntArray, window: int) -> tuple[IntArray, IntArray]:
    """Return [start, end) of each row, (n,) each, the rows in any order; start >= end: never on the front."""
    order = np.argsort(times, kind="stable")
    points, groups, times = points[order], groups[order], times[order]
    starts, ends = times.copy(), times + window
    for begin in range(0, len(times), _BLOCK):
        some = slice(begin, min(begin + _BLOCK, len(times)))
        low = int(np.searchsorted(times, times[some.start] - window, "right"))
        high = int(np.searchsorted(times, times[some.stop - 1] + window, "left"))
        near = slice(low, high)
        beats = better([points[near]], [points[some]]) & (groups[near, None] == groups[None, some])
        when, mine = times[near, None], times[None, some]
        starts[some] = np.maximum(starts[some], np.where(beats & (when <= mine), when + window, -_NEVER).max(axis=0))
        ends[some] = np.minimum(ends[some], np.where(beats & (when > mine), when, _NEVER).min(axis=0))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return starts[back], ends[back]


def updates_of(ids: IntArray, starts: IntArray, ends: IntArray, until: int) -> IntArray:
    """Return the updates before `until`, (m, 3): time, ADD or DEL, id; in order of time, DEL before ADD, then by id."""
    real = starts < ends
    ids, starts, ends = ids[real], starts[real], ends[real]
    updates = np.concatenate([
        np.column_stack([starts, np.full(len(ids), ADD), ids]),
        np.column_stack([ends, np.full(len(ids), DEL), ids]),
    ]).astype(np.int64)  # fmt: skip
    return in_order(updates[updates[:, 0] < until])


def in_order(updates: IntArray) -> IntArray:
    return updates[np.lexsort((updates[:, 2], updates[:, 1], updates[:, 0]))]


def replayed(updates: IntArray, instants: Sequence[int]) -> list[set[int]]:
    """Return the ids on the front at each of some instants, ascending, if the updates are applied."""
    front: set[int] = set()
    fronts, at = [], 0
    for instant in instants:
        while at < len(updates) and updates[at, 0] <= instant:
            _, action, row = updates[at].tolist()
            front.add(row) if action == ADD else front.remove(row)
            at += 1
        fronts.append(set(front))
    return fronts
