"""One front per group of rows, with a common clock: one compiled call for all small groups, one per large group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from skypane.operators.fronts.front import Front, FrontContents, NewPoints, ascending, check_arrivals, joined
from skypane.operators.fronts.small_fronts import SmallFronts
from skypane.operators.fronts.updates import Updates, check_window
from skypane.types import IntArray, Micros

LARGE: Final = 512
"""Number of points, stored and new, from which a group has its own Front, whose index takes a fixed time to build: with
a hundred groups of 900 points three times as fast as 2,048, and nowhere slower (measure/bench/continuous.py)."""


class _Shares(NamedTuple):
    """The arrivals of one step, in order of time within a group: those of small groups, and of each large group."""

    small: NewPoints
    groups: IntArray
    large: dict[int, NewPoints]


class GroupedFronts:
    """Fronts by group; a group is a number that never changes, from 0 on and without large gaps."""

    def __init__(self, d: int, window: Micros) -> None:
        self.d = d
        self.window = check_window(window)
        self._small = SmallFronts(d, window)
        self._large: dict[int, Front] = {}

    @property
    def clock(self) -> Micros:
        """The time before which all updates have been returned."""
        return self._small.clock

    def step(self, arrivals: NewPoints, groups: IntArray, until: Micros) -> Updates:
        """Take the arrivals of [clock, until), with groups (n,); return the updates of that span, as Front.step."""
        check_arrivals(arrivals, self.d, (self.clock, until))
        if (arrivals.times[1:] < arrivals.times[:-1]).any():
            order = np.argsort(arrivals.times, kind="stable")
            arrivals, groups = arrivals.at(order), groups[order]
        small, groups, large = self._shared_out(arrivals, groups)
        updates = [self._small.step(small, groups, until)]
        updates += [self._large[group].step(mine, until) for group, mine in large.items()]
        self._forget_empty()
        return Updates.merged(updates)

    def currents(self, arrivals: NewPoints, groups: IntArray, clocks: Sequence[Micros]) -> list[IntArray]:
        """Do as step() until the last clock, without returning updates; return current() at each clock.

        Arrivals of a group must be in order of time, and none may dominate another of the same time.
        """
        check_arrivals(arrivals, self.d, (self.clock, clocks[-1]))
        small, groups, large = self._shared_out(arrivals, groups)
        self._small.take(small, groups, clocks[-1])
        parts = [[self._small.current_at(clock) for clock in clocks]]
        parts += [currents_of(self._large[group], mine, clocks) for group, mine in large.items()]
        self._forget_empty()
        return [ascending(np.concatenate(rows)) for rows in zip(*parts, strict=True)] if large else parts[0]

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        return ascending(np.concatenate([self._small.current(), *(front.current() for front in self._large.values())]))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return ascending(np.concatenate([self._small.kept(), *(front.kept() for front in self._large.values())]))

    def __len__(self) -> int:
        """Return the number of points stored in all groups."""
        return len(self._small) + sum(map(len, self._large.values()))

    def snapshot(self) -> tuple[FrontContents, IntArray]:
        """Return the state to remember and the group of each point; points of a group are in order of arrival."""
        parts = [self._small.snapshot()]
        for group, front in self._large.items():
            stored = front.snapshot()
            parts.append((stored, np.full(len(stored.rows), group)))
        return joined([stored for stored, _ in parts]), np.concatenate([groups for _, groups in parts])

    @classmethod
    def restore(cls, stored: FrontContents, groups: IntArray, window: Micros) -> Self:
        """Return fronts that continue from a snapshot()."""
        fronts = cls(stored.points.shape[1], window)
        fronts._small.go_on(stored, groups)
        fronts._let_grow(groups[:0])
        return fronts

    def _shared_out(self, arrivals: NewPoints, groups: IntArray) -> _Shares:
        others = ~np.isin(groups, [*self._large]) if self._large else np.ones(len(groups), np.bool_)
        if self._let_grow(groups[others]):
            others = ~np.isin(groups, [*self._large])
        if not self._large:
            return _Shares(arrivals, groups, {})
        return _Shares(arrivals.at(others), groups[others], self._by_group(arrivals.at(~others), groups[~others]))

    def _let_grow(self, coming: IntArray) -> bool:
        """Give each group that outgrows the small ones with these arrivals its own Front; return whether any does."""
        outgrown = self._small.outgrown(coming, LARGE).tolist()
        for group in outgrown:
            self._large[group] = Front.restore(self._small.give_up(group), self.window)
        return bool(outgrown)

    def _by_group(self, arrivals: NewPoints, groups: IntArray) -> dict[int, NewPoints]:
        """Return the arrivals of each large group, which may be empty."""
        order = np.argsort(groups, kind="stable")
        arrivals, groups = arrivals.at(order), groups[order]
        large = sorted(self._large)
        edges = np.searchsorted(groups, [*large, np.iinfo(np.int64).max]).tolist()
        return {group: arrivals.at(slice(*edge)) for group, edge in zip(large, pairwise(edges), strict=True)}

    def _forget_empty(self) -> None:
        self._large = {group: front for group, front in self._large.items() if len(front)}


def currents_of(front: Front, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
    """Advance a front to each of `clocks` with the arrivals, in order of time, before it; return current() at each."""
    edges = [0, *np.searchsorted(arrivals.times, clocks).tolist()]
    found = []
    for clock, edge in zip(clocks, pairwise(edges), strict=True):
        front.take(arrivals.at(slice(*edge)), clock)
        found.append(front.current())
    return found
