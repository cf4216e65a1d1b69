"""The fronts of many small groups at once: all their points in order of arrival, those of a group in a chain.

An arrival meets the points of its own group, from the youngest on, in one compiled call for all groups. Nothing is sorted or
moved for it: what an arrival costs depends on its group alone, however many groups there are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.influence import END, START, TIME
from skypane.kernels.influence_groups import Chains, absorb_chains, absorb_runs, chain
from skypane.operators.continuous.front import BEGIN, Arrivals, Stored, ascending
from skypane.operators.continuous.updates import Updates
from skypane.types import BoolArray, IntArray, Micros

_LEAST_SPARE: Final = 4_096
"""Slots that are kept free for arrivals at least."""

_SEVERAL: Final = 4
"""Arrivals of a group at a time, on average, from which on it pays to sort them by group."""


class ChainedFronts:
    """Fronts by group as in groups.py, none of them indexed; arrivals come in order of time, and are not checked."""

    def __init__(self, d: int, window: Micros) -> None:
        self.window = window
        self.clock = BEGIN
        self._size = 0
        self._rows: IntArray = np.empty(0, np.int64)
        self._allocate(_LEAST_SPARE, d)
        self._end_chains(0)

    def step(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), each of a group, (n,); return the updates of that span, as Front.step."""
        span = (self.clock, until)
        self.take(arrivals, groups, until)
        starts, ends = self._stays
        return Updates.of_stays(self._rows[: self._size], starts, ends, span)

    def take(self, arrivals: Arrivals, groups: IntArray, until: Micros) -> None:
        """Do as step(), without telling the updates."""
        self._know(groups)
        if self._together(arrivals.times):
            order = np.lexsort((groups, arrivals.times))
            begin = self._write(arrivals.at(order), groups[order])
            absorb_runs(self._chains, begin, self._size, self.window)
        elif len(groups):
            begin = self._write(arrivals, groups)
            absorb_chains(self._chains, begin, self._size, self.window)
        self.clock = until

    def go_on(self, stored: Stored, groups: IntArray) -> None:
        """Go on where fronts were that gave these points, none of which are here; those of a group by arrival."""
        self.clock = stored.clock
        begin = self._write(Arrivals(stored.points, stored.times, stored.rows), groups)
        self._chains.clocks[START, begin : self._size] = stored.starts
        chain(self._chains, begin, self._size)

    def outgrown(self, groups: IntArray, largest: int) -> IntArray:
        """Return the groups that have more points than that, with arrivals of these groups."""
        self._know(groups)
        sizes = self._chains.sizes
        return np.flatnonzero(sizes + np.bincount(groups, minlength=len(sizes)) > largest)

    def give_up(self, group: int) -> Stored:
        """Forget a group; return its points."""
        mine = np.flatnonzero(self._kept & (self._chains.groups[: self._size] == group))
        stored = self._stored(mine)
        self._chains.clocks[START:, mine] = BEGIN
        self._chains.youngest[group] = -1
        self._chains.sizes[group] = 0
        return stored

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        starts, ends = self._stays
        return ascending(self._rows[: self._size][(starts < self.clock) & (self.clock <= ends) & (starts < ends)])

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return ascending(self._rows[: self._size][self._kept])

    def __len__(self) -> int:
        """Count the points stored, of all groups."""
        return int(np.count_nonzero(self._kept))

    def snapshot(self) -> tuple[Stored, IntArray]:
        """Return what must be remembered from here on, by arrival, and the group of each point."""
        at = np.flatnonzero(self._kept)
        return self._stored(at), self._chains.groups[at]

    @property
    def _stays(self) -> IntArray:
        """From when until when each point is on the front, (2, n)."""
        return self._chains.clocks[START:, : self._size]

    @property
    def _kept(self) -> BoolArray:
        kept: BoolArray = self._chains.clocks[END, : self._size] >= self.clock
        return kept

    def _stored(self, at: Any) -> Stored:
        points, clocks, *_ = self._chains
        return Stored(points[at], clocks[TIME, at], self._rows[at], clocks[START, at], self.clock)

    def _write(self, arrivals: Arrivals, groups: IntArray) -> int:
        """Put arrivals into free slots, with stays that nothing has cut short yet; return the first."""
        if self._size + len(groups) > len(self._rows):
            self._make_room(len(groups))
        self._know(groups)
        begin, end = self._size, self._size + len(groups)
        chains = self._chains
        chains.points[begin:end] = arrivals.points
        chains.clocks[TIME, begin:end] = chains.clocks[START, begin:end] = arrivals.times
        chains.clocks[END, begin:end] = arrivals.times + self.window
        chains.groups[begin:end] = groups
        self._rows[begin:end] = arrivals.rows
        self._size = end
        return begin

    def _together(self, times: IntArray) -> bool:
        """Whether several arrivals of a group come at a time, so that they meet its chain together."""
        runs = 1 + np.count_nonzero(times[1:] != times[:-1])
        return bool(0 < _SEVERAL * runs * len(self._chains.sizes) <= len(times))

    def _make_room(self, coming: int) -> None:
        """Keep what may yet matter."""
        stored, groups = self.snapshot()
        self._allocate(2 * len(groups) + coming + _LEAST_SPARE, stored.points.shape[1])
        self._end_chains(int(groups.max(initial=-1)) + 1)
        self.go_on(stored, groups)

    def _allocate(self, room: int, d: int) -> None:
        self._size = 0
        self._rows = np.empty(room, np.int64)
        groups, older, none = (np.empty(n, np.int64) for n in (room, room, 0))
        self._chains = Chains(np.empty((room, d)), np.empty((3, room), np.int64), groups, older, none, none)

    def _end_chains(self, groups: int) -> None:
        """Let there be so many groups, with nothing in their chains."""
        self._chains = self._chains._replace(youngest=np.full(groups, -1), sizes=np.zeros(groups, np.int64))

    def _know(self, groups: IntArray) -> None:
        """Have a chain for each of these groups."""
        youngest, sizes = self._chains.youngest, self._chains.sizes
        more = int(groups.max(initial=-1)) + 1 - len(sizes)
        if more > 0:
            more = max(more, len(sizes))
            youngest = np.concatenate([youngest, np.full(more, -1)])
            self._chains = self._chains._replace(youngest=youngest, sizes=np.append(sizes, np.zeros(more, np.int64)))
