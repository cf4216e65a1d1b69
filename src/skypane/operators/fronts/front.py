"""The exact batch form of the continuous skyline: computes the updates up to a punctuation from arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.blocks import BLOCK
from skypane.kernels.byte_ranks import Ranking, ranking
from skypane.kernels.clusters import clustered
from skypane.kernels.column_layout import columns_of, frozen
from skypane.kernels.gathering import put_points
from skypane.kernels.influence import END, START, TIME, absorb, absorb_apart, empty_index, empty_slots, rebuild
from skypane.kernels.thinning import has_nan
from skypane.operators.fronts.prefilter import StrongPoint, passing
from skypane.operators.fronts.updates import Updates, check_window
from skypane.types import BadInputError, FloatArray, IntArray, Micros

_LEAST_SPARE: Final = 16 * BLOCK
"""Minimum number of free slots for arrivals: few, so that a small store stays in the nearest cache."""

_SPARE: Final = 48 * BLOCK
"""Number of free slots that is enough unless more points are stored: a rebuild then serves as many arrivals."""

_MANY: Final = 4_096
"""Number of arrivals in a step from which it pays to look for arrivals that make no difference."""

_CROWDED: Final = 40
"""Allows coarser ranks than a single skyline needs: arrivals are ranked one by one, and tables are faster than cuts."""

_CLOSE: Final = 16
"""Places per number up to which marking places is faster than sorting."""

BEGIN: Final[Micros] = -(2**62)
"""A time before all others."""


class NewPoints(NamedTuple):
    """New points, in any order: (n, d) float64, smaller is better; times in microseconds; new row numbers."""

    points: FloatArray
    times: IntArray
    rows: IntArray

    def at(self, which: Any) -> NewPoints:
        """Return some of the points, by index or slice."""
        return NewPoints(self.points[which], self.times[which], self.rows[which])


class FrontContents(NamedTuple):
    """The state of a front between two steps: the points that are or may yet be on it (non-obsolete points).

    They are in order of arrival; `starts` has the time at which each enters the front, unless a point that dominates it
    comes before.
    """

    points: FloatArray  # (n, d)
    times: IntArray
    rows: IntArray
    starts: IntArray
    clock: Micros  # all updates before this time have been returned

    def at(self, which: Any) -> FrontContents:
        """Return some of the points, by index, mask or slice."""
        points, times, rows, starts, clock = self
        return FrontContents(points[which], times[which], rows[which], starts[which], clock)


def joined(parts: Sequence[FrontContents]) -> FrontContents:
    """Return the points of all parts in order; there is at least one part, and all have the same clock."""
    points, times, rows, starts = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:4])
    return FrontContents(points, times, rows, starts, parts[0].clock)


class Front:
    """The front of a sliding window of `window` microseconds over points with d criteria.

    Each step takes the arrivals of [clock, until) and returns the updates of that span, so the division of a stream
    into steps makes no difference. The caller must reject arrivals that come after their step; here they are an error.
    """

    def __init__(self, d: int, window: Micros) -> None:
        self.window = check_window(window)
        self.clock = BEGIN
        self._size = 0
        self._allocate(_room_for(0), d)
        self._ranking: Ranking | None = None
        self._strong: StrongPoint | None = None

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), move the clock to `until`, and return the updates of that span.

        Raise BadInputError if a time is outside the span, if a point is NaN, or if the clock would go back.
        """
        span = (self.clock, until)
        parts = self._advance(arrivals, until)
        return Updates.merged([*parts, self._updates(slice(None), span)])

    def take(self, arrivals: NewPoints, until: Micros) -> None:
        """Do as step(), without returning updates; no arrival may dominate another of the same time."""
        arrivals = self._checked(arrivals, until)
        begin = 0
        while begin < len(arrivals.rows):
            if self._size == len(self._rows):
                self._keep(self._needed())
            end = int(np.searchsorted(arrivals.times, arrivals.times[begin], "right"))
            end = min(end, begin + len(self._rows) - self._size)
            self._absorb(arrivals.at(slice(begin, end)), apart=True)
            begin = end
        self.clock = until

    def current(self) -> IntArray:
        """Return the rows on the front after all updates before the clock, ascending."""
        _, starts, ends = self._slots.clocks[:, : self._size]
        return ascending(self._rows[: self._size][(starts < self.clock) & (self.clock <= ends) & (starts < ends)])

    def __len__(self) -> int:
        """Return the number of points stored, |DB| in paper 4."""
        return int(np.count_nonzero(self._kept(self.clock)))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending."""
        return ascending(self._rows[: self._size][self._kept(self.clock)])

    def snapshot(self) -> FrontContents:
        """Return the state that a front must remember from now on."""
        kept = np.flatnonzero(self._kept(self.clock))
        return self._stored(kept)

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros) -> Front:
        """Return a front that continues from a snapshot()."""
        front = cls(stored.points.shape[1], window)
        front.clock = stored.clock
        front._store(stored)
        return front

    def _advance(self, arrivals: NewPoints, until: Micros) -> list[Updates]:
        """Take the arrivals and move the clock; return the updates of points discarded meanwhile."""
        arrivals = self._checked(arrivals, until)
        parts = self._take(self._seen(arrivals), (self.clock, until))
        self.clock = until
        return parts

    def _allocate(self, room: int, d: int) -> None:
        self._slots = empty_slots(room, d)
        self._index = empty_index(room, d)
        self._rows = np.empty(room, np.int64)

    def _checked(self, arrivals: NewPoints, until: Micros) -> NewPoints:
        check_arrivals(arrivals, self._slots.points.shape[1], (self.clock, until))
        times = arrivals.times
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            return arrivals.at(order)
        return arrivals

    def _seen(self, arrivals: NewPoints) -> NewPoints:
        """Drop the arrivals that are never on the front; arrivals are in order of time."""
        if len(arrivals.rows) < _MANY:
            return arrivals
        unseen, self._strong = passing(arrivals.points, arrivals.times, self._strong, self.window)
        return arrivals.at(np.flatnonzero(~unseen))

    def _take(self, arrivals: NewPoints, span: tuple[Micros, Micros]) -> list[Updates]:
        """Take arrivals in order of time; return the updates of points discarded to make room for them."""
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
        self._keep(needed)
        return updates

    def _needed(self) -> Any:
        """Return the mask of the slots that may still matter after the last arrival."""
        return self._kept(int(self._slots.clocks[TIME, self._size - 1]) + 1)

    def _keep(self, which: Any) -> None:
        self._store(self._stored(np.flatnonzero(which)))

    def _stored(self, at: IntArray) -> FrontContents:
        points, _, clocks = self._slots
        return FrontContents(points[at], clocks[TIME, at], self._rows[at], clocks[START, at], self.clock)

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

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        """Return the updates of some slots, by mask or slice over the slots in use."""
        _, starts, ends = self._slots.clocks[:, : self._size]
        return Updates.of_stays(self._rows[: self._size][at], starts[at], ends[at], span)


def ascending(numbers: IntArray) -> IntArray:
    """Return distinct numbers in order; most inputs are in order already, and most others are dense."""
    if not (numbers[1:] < numbers[:-1]).any():
        return numbers
    least, span = numbers.min(), np.ptp(numbers) + 1
    if span > _CLOSE * len(numbers):
        return np.sort(numbers)
    there = np.zeros(span, np.bool_)
    there[numbers - least] = True
    found: IntArray = np.flatnonzero(there) + least
    return found


def check_arrivals(arrivals: NewPoints, d: int, span: tuple[Micros, Micros]) -> None:
    """Raise BadInputError unless they are points with d criteria at times in the half-open, forward span."""
    points, times, rows = arrivals
    clock, until = span
    if points.shape != (len(times), d) or len(times) != len(rows):
        raise BadInputError(f"need points ({len(times)}, {d}), times and rows of one length, got {points.shape}")
    if until < clock:
        raise BadInputError(f"the clock cannot go back from {clock} to {until}")
    if len(times) and not clock <= times.min() <= times.max() < until:
        raise BadInputError(f"times must be in [{clock}, {until}), got {times.min()} to {times.max()}")
    if has_nan(frozen(np.ascontiguousarray(points.T if points.flags.f_contiguous else points))):
        row, column = np.argwhere(np.isnan(points))[0]
        raise BadInputError(f"points must not be NaN, got NaN in column {column} of row {rows[row]}")


def _room_for(stored: int) -> int:
    """Return the number of slots for the points stored and for arrivals, in whole blocks."""
    spare = max(stored, min(3 * stored + _LEAST_SPARE, _SPARE))
    return -(-(stored + spare) // BLOCK) * BLOCK
