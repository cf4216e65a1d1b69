"""The fronts of many small groups: all points are stored in order of arrival, and one call compares all groups.

Only numbers are sorted: the cost of an arrival depends on its group alone, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

import numpy as np

from skypane.kernels.column_layout import columns_of, frozen
from skypane.kernels.gathering import take_points
from skypane.kernels.grouped_skyline import by_code
from skypane.kernels.influence import END, START, TIME
from skypane.kernels.influence_groups import (
    NO_MEMBERS,
    Members,
    absorb_members,
    empty_points,
    groups_of,
    members_at,
    members_of,
    move_together,
    rows_at,
    slots_of,
)
from skypane.operators.fronts.front_operator import (
    BEGIN,
    FrontContents,
    FrontOperator,
    NewPoints,
    Updates,
    ascending,
    check_window,
    group_numbers,
)
from skypane.operators.stays import WindowStays
from skypane.types import IntArray, Micros

_LEAST_SPARE: Final = 4_096
"""Minimum number of free slots for arrivals."""


class SmallFronts(FrontOperator):
    """Fronts by group, whose points are not indexed."""

    def __init__(self, d: int, window: Micros) -> None:
        self.window = check_window(window)
        self._clock = BEGIN
        self._d = d
        #: slots in use
        self._size = 0
        self._members = NO_MEMBERS
        #: upper bound of the points of each group
        self._sizes: IntArray = np.zeros(0, np.int64)
        self._allocate(_LEAST_SPARE)

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros) -> Self:
        """Return fronts that continue from a snapshot()."""
        fronts = cls(stored.points.shape[1], window)
        fronts._clock = stored.clock
        fronts._write(stored)
        fronts._clocks[START, : fronts._size] = stored.starts
        if len(stored.rows):
            fronts._members = members_of(group_numbers(stored), 0)
        return fronts

    @property
    def clock(self) -> Micros:
        return self._clock

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        arrivals.check(self._d, (self._clock, until), grouped=True)
        return Updates.merged([self.advance(arrivals.by_time(), until)])

    def advance(self, arrivals: NewPoints, until: Micros) -> Updates:
        """Do as step() with checked arrivals, those of a group in order of time; updates are in any order."""
        span = (self._clock, until)
        self.take(arrivals, until)
        _, starts, ends = self._clocks[:, : self._size]
        return Updates.of_stays(self._rows[: self._size], starts, ends, span)

    def take(self, arrivals: NewPoints, until: Micros) -> None:
        groups = group_numbers(arrivals)
        if len(groups):
            if (groups[1:] < groups[:-1]).any():  # points to compare are put side by side
                order = by_code(frozen(groups))
                points = take_points(columns_of(arrivals.points), order).T
                arrivals = NewPoints(points, arrivals.times[order], arrivals.rows[order])
                groups = groups[order]
            coming = members_of(groups, self._write(arrivals))
            self._members = absorb_members(self._points, self._clocks, self._members, coming, self.window)
        self._clock = until

    def currents(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
        self.take(arrivals, clocks[-1])
        return [self._current_at(clock) for clock in clocks]

    def stays(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> WindowStays:
        self.take(arrivals, clocks[-1])
        _, starts, ends = self._clocks[:, : self._size]
        real = starts < ends
        rows = self._rows[: self._size]
        return WindowStays.between(rows[real], starts[real], ends[real], np.array(clocks, np.int64))

    def groups_above(self, largest: int, coming: IntArray) -> IntArray:
        """Return the groups with more than `largest` points, including arrivals of the groups `coming`."""
        self._sizes = _with(self._sizes, coming)
        if self._sizes.max(initial=0) > largest:
            self._sizes = _with(np.bincount(groups_of(self._kept)), coming)
        return np.flatnonzero(self._sizes > largest)

    def pop(self, group: int) -> FrontContents:
        """Remove a group and return its points, without their group."""
        self._members = self._kept
        mine = groups_of(self._members) == group
        stored = self._stored(self._members[mine])._replace(groups=None)
        self._clocks[START:, slots_of(self._members[mine])] = BEGIN
        self._members = self._members[~mine]
        self._sizes[group] = 0
        return stored

    def current(self) -> IntArray:
        return self._current_at(self._clock)

    def _current_at(self, clock: Micros) -> IntArray:
        """Return current() as of `clock`, a time in the last step."""
        return ascending(rows_at(self._clocks, self._rows[: self._size], clock))

    def kept(self) -> IntArray:
        return np.sort(self._rows[slots_of(self._kept)])

    def __len__(self) -> int:
        return len(self._kept)

    def snapshot(self) -> FrontContents:
        return self._stored(self._kept)

    @property
    def _kept(self) -> Members:
        return members_at(self._clocks, self._members, self._clock)

    def _stored(self, members: Members) -> FrontContents:
        at, clocks = slots_of(members), self._clocks
        return FrontContents(
            self._points[at, : self._d],
            clocks[TIME, at],
            self._rows[at],
            clocks[START, at],
            self._clock,
            groups_of(members),
        )

    def _write(self, arrivals: NewPoints | FrontContents) -> int:
        """Put arrivals into free slots, with stays of full length; return the first slot."""
        if self._size + len(arrivals.rows) > len(self._rows):
            self._make_room(len(arrivals.rows))
        begin, end = self._size, self._size + len(arrivals.rows)
        clocks = self._clocks
        self._points[begin:end, : self._d] = arrivals.points
        clocks[TIME, begin:end] = clocks[START, begin:end] = arrivals.times
        clocks[END, begin:end] = arrivals.times + self.window
        self._rows[begin:end] = arrivals.rows
        self._size = end
        return begin

    def _make_room(self, coming: int) -> None:
        """Keep the points that may still matter, in the same memory if there is room."""
        self._members = members = self._kept
        points, clocks, rows, size = self._points, self._clocks, self._rows, len(members)
        move_together(points, clocks, rows[: self._size], members)
        if 2 * size + coming > len(rows):
            self._allocate(3 * size + 2 * coming + _LEAST_SPARE)
            self._points[:size], self._clocks[:, :size], self._rows[:size] = (
                points[:size],
                clocks[:, :size],
                rows[:size],
            )
        self._members, self._size = members, size

    def _allocate(self, room: int) -> None:
        self._points = empty_points(room, self._d)
        self._clocks: IntArray = np.empty((3, room), np.int64)
        self._rows: IntArray = np.empty(room, np.int64)


def _with(sizes: IntArray, groups: IntArray) -> IntArray:
    """Return sizes by group, increased by further points of `groups`."""
    more = np.bincount(groups, minlength=len(sizes))
    more[: len(sizes)] += sizes
    return more
