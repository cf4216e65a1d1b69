"""One front per group of rows, which share a clock: small groups together in one compiled call, each large one by itself."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np

from skypane.kernels.influence_groups import Runs, absorb_runs
from skypane.operators.continuous.front import BEGIN, Arrivals, Front, Stored, check_arrivals, joined
from skypane.operators.continuous.updates import Updates, check_window
from skypane.types import BoolArray, FloatArray, IntArray, Micros

LARGE: Final = 512
"""Points, stored and new, from which a group has a Front of its own, whose index costs a fixed time to build: with a hundred
groups of 900 points three times as fast as at 2,048, and nowhere slower (bench/continuous.py)."""


class _Small(NamedTuple):
    """The stored points of all small groups, by group and then by arrival."""

    groups: IntArray
    points: FloatArray  # (n, d)
    times: IntArray
    rows: IntArray
    starts: IntArray
    ends: IntArray

    def at(self, which: IntArray | BoolArray) -> _Small:
        groups, points, times, rows, starts, ends = self
        return _Small(groups[which], points[which], times[which], rows[which], starts[which], ends[which])

    def joined(self, other: _Small) -> _Small:
        """Return both, by group; of one group, these before the others."""
        order = np.argsort(np.concatenate([self.groups, other.groups]), kind="stable")
        columns: list[Any] = [np.concatenate(pair)[order] for pair in zip(self, other, strict=True)]
        return _Small(*columns)


class GroupedFronts:
    """Fronts by group, a group being an integer that always means the same one; a group is forgotten once it is empty."""

    def __init__(self, d: int, window: Micros) -> None:
        self.d = d
        self.window = check_window(window)
        self.clock = BEGIN
        self._small = _new(np.empty((0, d)), *(np.empty(0, np.int64),) * 3, window)
        self._large: dict[int, Front] = {}

    def step(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), each of a group, (n,); return the updates of that span, as Front.step."""
        check_arrivals(arrivals, self.d, (self.clock, until))
        order = np.lexsort((arrivals.times, groups))
        arrivals, groups = arrivals.at(order), groups[order]
        small = self._grown(groups)
        parts = [self._step_small(arrivals.at(small), groups[small], until)]
        parts += self._step_large(arrivals.at(~small), groups[~small], until)
        self.clock = until
        return Updates.merged(parts)

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        rows, starts, ends = self._small.rows, self._small.starts, self._small.ends
        on = (starts < self.clock) & (self.clock <= ends) & (starts < ends)
        return np.sort(np.concatenate([rows[on], *(front.current() for front in self._large.values())]))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(np.concatenate([self._small.rows, *(front.kept() for front in self._large.values())]))

    def __len__(self) -> int:
        """Count the points stored, of all groups."""
        return len(self._small.rows) + sum(map(len, self._large.values()))

    def snapshot(self) -> tuple[Stored, IntArray]:
        """Return what must be remembered from here on, and the group of each point; those of a group by arrival."""
        groups, points, times, rows, starts, _ = self._small
        parts = [(Stored(points, times, rows, starts, self.clock), groups)]
        for group, front in self._large.items():
            stored = front.snapshot()
            parts.append((stored, np.full(len(stored.rows), group)))
        return joined([stored for stored, _ in parts]), np.concatenate([groups for _, groups in parts])

    @classmethod
    def restore(cls, stored: Stored, groups: IntArray, window: Micros) -> Self:
        """Return fronts that go on where those that gave `stored` and `groups` were."""
        fronts = cls(stored.points.shape[1], window)
        points, times, rows, starts, fronts.clock = stored
        none = fronts._small
        fronts._small = none.joined(_Small(groups, points, times, rows, starts, times + window))
        fronts._grown(none.groups)
        return fronts

    def _grown(self, groups: IntArray) -> BoolArray:
        """Return which arrivals, by group, are of small groups; give those that outgrow that a Front."""
        present, counts = np.unique(np.concatenate([self._small.groups, groups]), return_counts=True)
        for group in present[counts > LARGE].tolist():
            if group not in self._large:
                mine = self._small.groups == group
                _, points, times, rows, starts, _ = self._small.at(mine)
                self._large[group] = Front.restore(Stored(points, times, rows, starts, self.clock), self.window)
                self._small = self._small.at(~mine)
        return ~np.isin(groups, [*self._large])

    def _step_small(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> Updates:
        fresh = _new(*arrivals, groups, self.window)
        both = self._small.joined(fresh)
        if len(fresh.rows):
            present, first = np.unique(both.groups, return_index=True)
            begin = first + np.bincount(np.searchsorted(present, self._small.groups), minlength=len(present))
            bounds = np.append(first, len(both.rows))
            absorb_runs(Runs(both.points, both.times, bounds, begin), both.starts, both.ends, self.window)
        self._small = both.at(both.ends >= until)
        return Updates.merged([Updates.of_stays(both.rows, both.starts, both.ends, (self.clock, until))])

    def _step_large(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> list[Updates]:
        """Let each large group take its arrivals, which lie by group; forget those that are empty then."""
        updates = []
        for group, front in [*self._large.items()]:
            mine = slice(*np.searchsorted(groups, [group, group + 1]))
            updates.append(front.step(arrivals.at(mine), until))
            if not len(front):
                del self._large[group]
        return updates


def _new(points: FloatArray, times: IntArray, rows: IntArray, groups: IntArray, window: Micros) -> _Small:
    return _Small(groups, points, times, rows, times.copy(), times + window)
