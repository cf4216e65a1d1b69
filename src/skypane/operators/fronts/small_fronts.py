"""The fronts of many small groups: all points are stored in order of arrival, and one call compares all groups.

Only numbers are sorted: the cost of an arrival depends on its group alone, however many groups there are.
"""

from __future__ import annotations

from typing import Final

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
from skypane.operators.fronts.front import BEGIN, FrontContents, NewPoints, ascending
from skypane.operators.fronts.updates import Updates
from skypane.types import IntArray, Micros

_LEAST_SPARE: Final = 4_096
"""Minimum number of free slots for arrivals."""


class SmallFronts:
    """Fronts by group as in grouped_fronts.py, not indexed; arrivals of a group must be in order of time."""

    def __init__(self, d: int, window: Micros) -> None:
        self.window = window
        self.clock = BEGIN
        self._d = d
        #: slots in use
        self._size = 0
        self._members = NO_MEMBERS
        #: upper bound of the points of each group
        self._sizes: IntArray = np.zeros(0, np.int64)
        self._allocate(_LEAST_SPARE)

    def step(self, arrivals: NewPoints, groups: IntArray, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), with groups (n,); return the updates of that span, as Front.step."""
        span = (self.clock, until)
        self.take(arrivals, groups, until)
        _, starts, ends = self._clocks[:, : self._size]
        return Updates.of_stays(self._rows[: self._size], starts, ends, span)

    def take(self, arrivals: NewPoints, groups: IntArray, until: Micros) -> None:
        """Do as step(), without returning updates."""
        if len(groups):
            if (groups[1:] < groups[:-1]).any():  # points to compare are put side by side
                order = by_code(frozen(groups))
                points = take_points(columns_of(arrivals.points), order).T
                arrivals = NewPoints(points, arrivals.times[order], arrivals.rows[order])
                groups = groups[order]
            coming = members_of(groups, self._write(arrivals))
            self._members = absorb_members(self._points, self._clocks, self._members, coming, self.window)
        self.clock = until

    def go_on(self, stored: FrontContents, groups: IntArray) -> None:
        """Continue, while empty, from fronts with these points; points of a group are in order of arrival."""
        self.clock = stored.clock
        self._write(NewPoints(stored.points, stored.times, stored.rows))
        self._clocks[START, : self._size] = stored.starts
        self._members = members_of(groups, 0) if len(groups) else NO_MEMBERS

    def outgrown(self, groups: IntArray, largest: int) -> IntArray:
        """Return the groups with more than `largest` points, including arrivals of `groups`."""
        self._sizes = _with(self._sizes, groups)
        if self._sizes.max(initial=0) > largest:
            self._sizes = _with(np.bincount(groups_of(self._kept)), groups)
        return np.flatnonzero(self._sizes > largest)

    def give_up(self, group: int) -> FrontContents:
        """Remove a group and return its points."""
        self._members = self._kept
        mine = groups_of(self._members) == group
        stored = self._stored(self._members[mine])
        self._clocks[START:, slots_of(self._members[mine])] = BEGIN
        self._members = self._members[~mine]
        self._sizes[group] = 0
        return stored

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        return self.current_at(self.clock)

    def current_at(self, clock: Micros) -> IntArray:
        """Return current() as of `clock`, a time in the last step."""
        return ascending(rows_at(self._clocks, self._rows[: self._size], clock))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(self._rows[slots_of(self._kept)])

    def __len__(self) -> int:
        """Return the number of points stored in all groups."""
        return len(self._kept)

    def snapshot(self) -> tuple[FrontContents, IntArray]:
        """Return the state to remember, points of a group in order of arrival, and the group of each point."""
        kept = self._kept
        return self._stored(kept), groups_of(kept)

    @property
    def _kept(self) -> Members:
        return members_at(self._clocks, self._members, self.clock)

    def _stored(self, members: Members) -> FrontContents:
        at, clocks = slots_of(members), self._clocks
        return FrontContents(
            self._points[at, : self._d], clocks[TIME, at], self._rows[at], clocks[START, at], self.clock
        )

    def _write(self, arrivals: NewPoints) -> int:
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
