"""The exact batch form of the continuous skyline: arrivals in order of time go in, updates up to a punctuation come out."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.blocks import BLOCK
from skypane.kernels.influence import Index, Slots, absorb, empty_index, empty_slots, rebuild
from skypane.kernels.layout import columns_of
from skypane.kernels.ranks import Ranking, ranking
from skypane.kernels.skyline import require_numbers
from skypane.operators.continuous.updates import Updates, check_window
from skypane.types import BadInputError, FloatArray, IntArray, Micros

_SPARE: Final = 16 * BLOCK
"""Slots kept free for arrivals, beside as many as are stored."""

BEGIN: Final[Micros] = -(2**62)
"""Before all times."""


class Arrivals(NamedTuple):
    """New points, in any order: (n, d) float64, smaller is better; times in microseconds; row numbers, never used before."""

    points: FloatArray
    times: IntArray
    rows: IntArray


class Stored(NamedTuple):
    """All that a front must remember between two steps: the points that are or may yet be part of it (non-obsolete ones).

    By order of arrival; `starts` say when each enters the front, should nothing that dominates it come before.
    """

    points: FloatArray  # (n, d)
    times: IntArray
    rows: IntArray
    starts: IntArray
    clock: Micros  # updates before are told


class Front:
    """The front of a sliding window of `window` microseconds over points of d criteria.

    Each step takes the arrivals of [clock, until) and tells the updates of that span, so that where a stream is cut makes
    no difference. What comes later than its step is for the caller to reject; here it is an error.
    """

    def __init__(self, d: int, window: Micros) -> None:
        self.window = check_window(window)
        self.clock = BEGIN
        self._slots, self._index, self._rows = _room_for(0, d)
        self._size = 0
        self._ranking: Ranking | None = None

    def step(self, arrivals: Arrivals, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), move the clock to `until`, and return the updates of that span.

        BadInputError if a time is outside the span, if a point is NaN, or if the clock would go back.
        """
        arrivals = self._checked(arrivals, until)
        span = (self.clock, until)
        parts = []
        begin = 0
        while begin < len(arrivals.rows):
            if self._size == len(self._rows):
                parts.append(self._make_room(span))
            end = min(len(arrivals.rows), begin + len(self._rows) - self._size)
            self._absorb(Arrivals(*(column[begin:end] for column in arrivals)))
            begin = end
        self.clock = until
        parts.append(self._updates(np.ones(self._size, np.bool_), span))
        return Updates.merged(parts)

    def current(self) -> IntArray:
        """Return the rows on the front once all updates before the clock are applied, ascending."""
        starts, ends = self._slots.starts[: self._size], self._slots.ends[: self._size]
        return np.sort(self._rows[: self._size][(starts < self.clock) & (self.clock <= ends) & (starts < ends)])

    def __len__(self) -> int:
        """Count the points stored, |DB| in paper 4."""
        return int(np.count_nonzero(self._kept(self.clock)))

    def snapshot(self) -> Stored:
        """Return what a front must remember from here on."""
        kept = np.flatnonzero(self._kept(self.clock))
        slots = self._slots
        return Stored(slots.points[kept], slots.times[kept], self._rows[kept], slots.starts[kept], self.clock)

    @classmethod
    def restore(cls, stored: Stored, window: Micros) -> Front:
        """Return a front that goes on where the one that gave `stored` was."""
        front = cls(stored.points.shape[1], window)
        front.clock = stored.clock
        front._store(stored)
        return front

    def _checked(self, arrivals: Arrivals, until: Micros) -> Arrivals:
        points, times, rows = arrivals
        d = self._slots.points.shape[1]
        if points.shape != (len(times), d) or len(times) != len(rows):
            raise BadInputError(f"need points ({len(times)}, {d}), times and rows of one length, got {points.shape}")
        if until < self.clock:
            raise BadInputError(f"the clock cannot go back from {self.clock} to {until}")
        if len(times) and not self.clock <= times.min() <= times.max() < until:
            raise BadInputError(f"times must be in [{self.clock}, {until}), got {times.min()} to {times.max()}")
        try:
            require_numbers(columns_of(points))
        except ValueError as nan:
            raise BadInputError(str(nan)) from nan
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            return Arrivals(points[order], times[order], rows[order])
        return arrivals

    def _absorb(self, arrivals: Arrivals) -> None:
        if not len(arrivals.rows):
            return
        if self._ranking is None:
            self._ranking = ranking(columns_of(arrivals.points))
        begin, end = self._size, self._size + len(arrivals.rows)
        self._write(begin, arrivals, self._ranking)
        self._slots.starts[begin:end] = arrivals.times
        absorb(self._slots, self._index, begin, end, self.window)
        self._size = end

    def _write(self, begin: int, arrivals: Arrivals, ranking: Ranking) -> None:
        slots = self._slots
        end = begin + len(arrivals.rows)
        slots.points[begin:end] = arrivals.points
        slots.ranks[begin:end] = ranking.ranks(columns_of(arrivals.points))
        slots.times[begin:end] = arrivals.times
        slots.ends[begin:end] = arrivals.times + self.window
        self._rows[begin:end] = arrivals.rows

    def _make_room(self, span: tuple[Micros, Micros]) -> Updates:
        """Keep what may yet matter, its ranks made for it; return the updates of all else."""
        kept = self._kept(int(self._slots.times[self._size - 1]) + 1)
        updates = self._updates(~kept, span)
        at = np.flatnonzero(kept)
        slots = self._slots
        self._store(Stored(slots.points[at], slots.times[at], self._rows[at], slots.starts[at], self.clock))
        return updates

    def _store(self, stored: Stored) -> None:
        n, d = stored.points.shape
        self._slots, self._index, self._rows = _room_for(n, d)
        self._size = n
        self._ranking = None
        if n:
            self._ranking = ranking(columns_of(stored.points))
            self._write(0, Arrivals(stored.points, stored.times, stored.rows), self._ranking)
            self._slots.starts[:n] = stored.starts
        rebuild(self._slots, self._index, n)

    def _kept(self, clock: Micros) -> Any:
        """Which slots are not pruned, and in the window at `clock` or leave it right then."""
        bits = np.unpackbits(self._index.present.view(np.uint8), bitorder="little", count=self._size).view(np.bool_)
        return bits & (self._slots.ends[: self._size] >= clock)

    def _updates(self, which: Any, span: tuple[Micros, Micros]) -> Updates:
        n = self._size
        return Updates.of_stays(self._rows[:n][which], self._slots.starts[:n][which], self._slots.ends[:n][which], span)


def _room_for(stored: int, d: int) -> tuple[Slots, Index, IntArray]:
    """Room for the points stored, as many arrivals, and some."""
    room = -(-(2 * stored + _SPARE) // BLOCK) * BLOCK
    return empty_slots(room, d), empty_index(room, d), np.empty(room, np.int64)
