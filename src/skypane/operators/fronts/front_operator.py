"""Interface of all forms of a front: they take arrivals, return updates, and keep the rest in a snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.column_layout import frozen
from skypane.kernels.thinning import has_nan
from skypane.operators.stays import WindowStays
from skypane.types import BadInputError, ConfigError, FloatArray, IntArray, Micros

ADD: Final = 1
DEL: Final = -1

BEGIN: Final[Micros] = -(2**62)
"""A time before all others."""

LONGEST: Final[Micros] = 100 * 366 * 86_400_000_000
"""The longest window, a hundred years; no sum of a time and a window overflows."""

_CLOSE: Final = 16
"""Places per number up to which marking places is faster than sorting."""


class NewPoints(NamedTuple):
    """New points, in any order: (n, d) float64, smaller is better; times in microseconds; new row numbers.

    With groups, each point has the number of its group, which never changes; numbers start at 0, without large gaps.
    """

    points: FloatArray
    times: IntArray
    rows: IntArray
    groups: IntArray | None = None

    def at(self, which: Any) -> NewPoints:
        """Return some of the points, by index or slice."""
        points, times, rows, groups = self
        return NewPoints(points[which], times[which], rows[which], None if groups is None else groups[which])

    def by_time(self) -> NewPoints:
        """Return the points in order of time; points of one time keep their order."""
        if (self.times[1:] < self.times[:-1]).any():
            return self.at(np.argsort(self.times, kind="stable"))
        return self

    def check(self, d: int, span: tuple[Micros, Micros], *, grouped: bool) -> None:
        """Raise BadInputError unless they are points with d criteria at times in the half-open, forward span."""
        points, times, rows, groups = self
        clock, until = span
        if points.shape != (len(times), d) or len(times) != len(rows):
            raise BadInputError(f"need points ({len(times)}, {d}), times and rows of one length, got {points.shape}")
        if grouped != (groups is not None) or (groups is not None and len(groups) != len(rows)):
            raise BadInputError(f"need {'a group for each point' if grouped else 'points without groups'}")
        if until < clock:
            raise BadInputError(f"the clock cannot go back from {clock} to {until}")
        if len(times) and not clock <= times.min() <= times.max() < until:
            raise BadInputError(f"times must be in [{clock}, {until}), got {times.min()} to {times.max()}")
        if has_nan(frozen(np.ascontiguousarray(points.T if points.flags.f_contiguous else points))):
            row, column = np.argwhere(np.isnan(points))[0]
            raise BadInputError(f"points must not be NaN, got NaN in column {column} of row {rows[row]}")


class FrontContents(NamedTuple):
    """The state of a front between two steps: the points that are or may yet be on it (non-obsolete points).

    Those of a group are in order of arrival; `starts` has the time at which each enters the front, unless a point that
    dominates it comes before.
    """

    points: FloatArray  # (n, d)
    times: IntArray
    rows: IntArray
    starts: IntArray
    clock: Micros  # all updates before this time have been returned
    groups: IntArray | None = None

    @classmethod
    def empty(cls, d: int, *, grouped: bool) -> Self:
        none = np.empty(0, np.int64)
        return cls(np.empty((0, d)), none, none, none, BEGIN, none if grouped else None)

    def at(self, which: Any) -> FrontContents:
        """Return some of the points, by index, mask or slice."""
        points, times, rows, starts, clock, groups = self
        groups = None if groups is None else groups[which]
        return FrontContents(points[which], times[which], rows[which], starts[which], clock, groups)


def joined(parts: Sequence[FrontContents]) -> FrontContents:
    """Return the points of all parts in order; there is at least one part, and all have the same clock."""
    points, times, rows, starts, clocks, groups = zip(*parts, strict=True)
    return FrontContents(
        np.concatenate(points),
        np.concatenate(times),
        np.concatenate(rows),
        np.concatenate(starts),
        clocks[0],
        None if groups[0] is None else np.concatenate(groups),
    )


def group_numbers(part: NewPoints | FrontContents) -> IntArray:
    """Return the group of each point, which is 0 without groups."""
    return np.zeros(len(part.rows), np.int64) if part.groups is None else part.groups


class Updates(NamedTuple):
    """Changes of a front, (n,) each, in the order that the docstring of the package defines."""

    times: IntArray
    actions: NDArray[np.int8]  # ADD or DEL
    rows: IntArray

    @classmethod
    def of_stays(cls, rows: IntArray, starts: IntArray, ends: IntArray, span: tuple[Micros, Micros]) -> Self:
        """Return the updates of stays [start, end) in [span[0], span[1]), in any order; empty stays have none."""
        low, high = span
        real = starts < ends
        enter = real & (low <= starts) & (starts < high)
        leave = real & (low <= ends) & (ends < high)
        return cls(
            np.concatenate([starts[enter], ends[leave]]),
            np.repeat(np.array([ADD, DEL], np.int8), [np.count_nonzero(enter), np.count_nonzero(leave)]),
            np.concatenate([rows[enter], rows[leave]]),
        )

    @classmethod
    def merged(cls, parts: Sequence[Updates]) -> Self:
        """Return the updates of all parts, at least one, in order."""
        times, actions, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((rows, actions, times))
        return cls(times[order], actions[order], rows[order])


class FrontOperator(ABC):
    """The front of a sliding window of `window` microseconds over points, or a front for each group of points.

    Each step takes the arrivals of [clock, until) and returns the updates of that span, so the division of a stream
    into steps makes no difference. The caller must reject arrivals that come after their step; here they are an error.
    Any form can continue from the snapshot of any other one; the class method restore() of each form does so.
    """

    window: Micros

    @property
    @abstractmethod
    def clock(self) -> Micros:
        """The time before which all updates have been returned."""

    @abstractmethod
    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), move the clock to `until`, and return the updates of that span.

        Raise BadInputError, and change nothing, if a time is outside the span, if a point is NaN, if the clock would go
        back, or if groups are missing or not expected.
        """

    @abstractmethod
    def snapshot(self) -> FrontContents:
        """Return the state that a front must remember from now on."""

    @abstractmethod
    def current(self) -> IntArray:
        """Return the rows on the front after all updates before the clock, ascending."""

    @abstractmethod
    def kept(self) -> IntArray:
        """Return the rows stored, ascending."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of points stored, |DB| in paper 4."""

    def currents(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
        """Take the arrivals of [clock, clocks[-1]), in order of time; return current() at each of `clocks`.

        None of the arrivals of one time and group may dominate another.
        """
        edges = [0, *np.searchsorted(arrivals.times, clocks).tolist()]
        found = []
        for clock, edge in zip(clocks, pairwise(edges), strict=True):
            self.take(arrivals.at(slice(*edge)), clock)
            found.append(self.current())
        return found

    def stays(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> WindowStays:
        """Take the arrivals as currents() does; return at which of `clocks`, by place, each row is in current()."""
        return WindowStays.of_members(self.currents(arrivals, clocks), range(len(clocks)))

    def take(self, arrivals: NewPoints, until: Micros) -> None:
        """Do as step(), without returning updates; no arrival of one time and group may dominate another."""
        self.step(arrivals, until)


def check_window(window: Micros) -> Micros:
    """Return `window`; raise ConfigError if a window cannot have that length."""
    if not 0 < window <= LONGEST:
        raise ConfigError(f"window must be longer than 0 and at most 100 years, got {window} microseconds")
    return window


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
