"""One front, whole and indexed: the exact batch form of the continuous skyline, without groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np

from skypane.kernels.blocks import BLOCK
from skypane.kernels.byte_ranks import Ranking, ranking
from skypane.kernels.clusters import clustered
from skypane.kernels.column_layout import columns_of
from skypane.kernels.gathering import put_points
from skypane.kernels.influence import END, START, TIME, absorb, absorb_apart, empty_index, empty_slots, rebuild
from skypane.operators.fronts.front_operator import (
    BEGIN,
    FrontContents,
    FrontOperator,
    NewPoints,
    Updates,
    ascending,
    check_window,
)
from skypane.operators.fronts.prefilter import StrongPoint, passing
from skypane.operators.stays import WindowStays
from skypane.types import IntArray, Micros

_LEAST_SPARE: Final = 16 * BLOCK
"""Minimum number of free slots for arrivals: few, so that a small store stays in the nearest cache."""

_SPARE: Final = 48 * BLOCK
"""Number of free slots that is enough unless more points are stored: a rebuild then serves as many arrivals."""

MANY: Final = 4_096
"""Number of arrivals in a step from which it pays to look for arrivals that make no difference."""

_CROWDED: Final = 40
"""Allows coarser ranks than a single skyline needs: arrivals are ranked one by one, and tables are faster than cuts."""


class Front(FrontOperator):
    """The front of a sliding window of `window` microseconds over points with d criteria."""

    def __init__(self, d: int, window: Micros) -> None:
        self.window = check_window(window)
        self._clock = BEGIN
        self._size = 0
        self._allocate(_room_for(0), d)
        self._ranking: Ranking | None = None
        self._strong: StrongPoint | None = None

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros) -> Self:
        """Return a front that continues from a snapshot()."""
        front = cls(stored.points.shape[1], window)
        front.load(stored)
        return front

    def load(self, stored: FrontContents) -> None:
        """Continue from a snapshot(), discarding all points."""
        self._clock = stored.clock
        self._store(stored)

    @property
    def clock(self) -> Micros:
        return self._clock

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        arrivals, span = self._checked(arrivals, until), (self._clock, until)
        parts = self._insert(self._filtered(arrivals), span)
        self._clock = until
        return Updates.merged([*parts, self._updates(slice(None), span)])

    def take(self, arrivals: NewPoints, until: Micros) -> None:
        self._take(arrivals, until, self._compact)

    def stays(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> WindowStays:
        at = np.array(clocks, np.int64)
        parts: list[WindowStays] = []

        def noted(needed: Any) -> None:
            parts.append(self._stays_between(~needed, at))
            self._compact(needed)

        self._take(arrivals, clocks[-1], noted)
        return WindowStays.joined([*parts, self._stays_between(slice(None), at)])

    def _take(self, arrivals: NewPoints, until: Micros, compact: Callable[[Any], None]) -> None:
        """Do as take(); `compact` keeps the slots of a mask when there is no room."""
        arrivals = self._checked(arrivals, until)
        begin = 0
        while begin < len(arrivals.rows):
            if self._size == len(self._rows):
                compact(self._needed())
            end = int(np.searchsorted(arrivals.times, arrivals.times[begin], "right"))
            end = min(end, begin + len(self._rows) - self._size)
            self._absorb(arrivals.at(slice(begin, end)), apart=True)
            begin = end
        self._clock = until

    def current(self) -> IntArray:
        _, starts, ends = self._slots.clocks[:, : self._size]
        return ascending(self._rows[: self._size][(starts < self._clock) & (self._clock <= ends) & (starts < ends)])

    def __len__(self) -> int:
        return int(np.count_nonzero(self._kept(self._clock)))

    def kept(self) -> IntArray:
        return ascending(self._rows[: self._size][self._kept(self._clock)])

    def snapshot(self) -> FrontContents:
        return self._stored(np.flatnonzero(self._kept(self._clock)))

    def _allocate(self, room: int, d: int) -> None:
        self._slots = empty_slots(room, d)
        self._index = empty_index(room, d)
        self._rows = np.empty(room, np.int64)

    def _checked(self, arrivals: NewPoints, until: Micros) -> NewPoints:
        """Return the arrivals in order of time; raise BadInputError as step()."""
        arrivals.check(self._slots.points.shape[1], (self._clock, until), grouped=False)
        return arrivals.by_time()

    def _filtered(self, arrivals: NewPoints) -> NewPoints:
        """Drop the arrivals that are never on the front; arrivals are in order of time."""
        if len(arrivals.rows) < MANY:
            return arrivals
        unseen, self._strong = passing(arrivals.points, arrivals.times, self._strong, self.window)
        return arrivals.at(np.flatnonzero(~unseen))

    def _insert(self, arrivals: NewPoints, span: tuple[Micros, Micros]) -> list[Updates]:
        """Insert arrivals in order of time; return the updates of points discarded to make room for them."""
        parts = []
        begin = 0
        while begin < len(arrivals.rows):
            if self._size == len(self._rows):
                parts.append(self._make_room(span))
            end = min(len(arrivals.rows), begin + len(self._rows) - self._size)
            self._absorb(arrivals.at(slice(begin, end)), apart=False)
            begin = end
        return parts

    def _absorb(self, arrivals: NewPoints, *, apart: bool) -> None:
        if not len(arrivals.rows):
            return
        begin, end = self._size, self._size + len(arrivals.rows)
        self._write(begin, arrivals, together=apart)
        (absorb_apart if apart else absorb)(self._slots, self._index, begin, end, self.window)
        self._size = end

    def _write(self, begin: int, arrivals: NewPoints, *, together: bool = False) -> IntArray | slice:
        """Put arrivals into slots from `begin` on, with stays of full length; return their order there.

        The order is that of the arrivals; with `together`, near points of one time are put into the same block.
        """
        columns = columns_of(arrivals.points)
        if self._ranking is None:
            self._ranking = ranking(columns, _CROWDED)
        ranks = self._ranking.ranks(columns)
        order: IntArray | slice
        together &= len(ranks) > BLOCK
        slots = self._slots
        end = begin + len(arrivals.rows)
        if together:
            order = clustered(ranks, arrivals.times, begin)
            put_points(slots.points[begin:end], columns, order)
        else:
            order = slice(None)
            slots.points[begin:end] = arrivals.points
        slots.ranks[begin:end] = ranks[order]
        slots.clocks[TIME, begin:end] = slots.clocks[START, begin:end] = arrivals.times
        slots.clocks[END, begin:end] = arrivals.times + self.window
        self._rows[begin:end] = arrivals.rows[order]
        return order

    def _make_room(self, span: tuple[Micros, Micros]) -> Updates:
        """Keep the points that may still matter, with new ranks; return the updates of all others."""
        needed = self._needed()
        updates = self._updates(~needed, span)
        self._compact(needed)
        return updates

    def _needed(self) -> Any:
        """Return the mask of the slots that may still matter after the last arrival."""
        return self._kept(int(self._slots.clocks[TIME, self._size - 1]) + 1)

    def _compact(self, which: Any) -> None:
        """Keep some slots, with new ranks."""
        self._store(self._stored(np.flatnonzero(which)))

    def _stored(self, at: IntArray) -> FrontContents:
        points, _, clocks = self._slots
        return FrontContents(points[at], clocks[TIME, at], self._rows[at], clocks[START, at], self._clock)

    def _store(self, stored: FrontContents) -> None:
        n, d = stored.points.shape
        room = _room_for(n)
        if not room <= len(self._rows) <= 2 * room:  # otherwise reuse the memory, which is mapped already
            self._allocate(room, d)
        self._size = n
        self._ranking = None
        if n:
            order = self._write(0, NewPoints(stored.points, stored.times, stored.rows), together=True)
            self._slots.clocks[START, :n] = stored.starts[order]
        rebuild(self._slots, self._index, n)

    def _kept(self, clock: Micros) -> Any:
        """Return the mask of the slots that are not pruned and are in the window at `clock`, or leave it then."""
        bits = np.unpackbits(self._index.present.view(np.uint8), bitorder="little", count=self._size).view(np.bool_)
        return bits & (self._slots.clocks[END, : self._size] >= clock)

    def _stays_between(self, at: Any, clocks: IntArray) -> WindowStays:
        """Return at which of `clocks` some slots are current, by mask or slice over the slots in use."""
        _, starts, ends = self._slots.clocks[:, : self._size]
        real = starts[at] < ends[at]
        rows = self._rows[: self._size][at]
        return WindowStays.between(rows[real], starts[at][real], ends[at][real], clocks)

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        """Return the updates of some slots, by mask or slice over the slots in use."""
        _, starts, ends = self._slots.clocks[:, : self._size]
        return Updates.of_stays(self._rows[: self._size][at], starts[at], ends[at], span)


def _room_for(stored: int) -> int:
    """Return the number of slots for the points stored and for arrivals, in whole blocks."""
    spare = max(stored, min(3 * stored + _LEAST_SPARE, _SPARE))
    return -(-(stored + spare) // BLOCK) * BLOCK
