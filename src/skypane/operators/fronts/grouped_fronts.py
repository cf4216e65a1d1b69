"""One front per group of rows, with a common clock: one compiled call for all small groups, one per large group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import (
    FrontContents,
    FrontOperator,
    NewPoints,
    Updates,
    ascending,
    group_numbers,
    joined,
)
from skypane.operators.fronts.small_fronts import SmallFronts
from skypane.operators.stays import WindowStays
from skypane.types import BoolArray, IntArray, Micros

LARGE: Final = 512
"""Number of points, stored and new, from which a group has its own Front, whose index takes a fixed time to build: with
a hundred groups of 900 points three times as fast as 2,048, and nowhere slower (measure/bench/continuous.py)."""


class _SplitArrivals(NamedTuple):
    """The arrivals of one step, in order of time within a group: those of small groups, and of each large group."""

    small: NewPoints
    large: dict[int, NewPoints]


class GroupedFronts(FrontOperator):
    """Fronts by group, each small or large as it has points."""

    def __init__(self, d: int, window: Micros) -> None:
        self.d = d
        self.window = window
        self._small = SmallFronts(d, window)
        self._large: dict[int, Front] = {}

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros) -> Self:
        """Return fronts that continue from a snapshot()."""
        fronts = cls(stored.points.shape[1], window)
        fronts._small = SmallFronts.restore(stored, window)
        fronts._promote(np.empty(0, np.int64))
        return fronts

    @property
    def clock(self) -> Micros:
        return self._small.clock

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        arrivals.check(self.d, (self.clock, until), grouped=True)
        small, large = self._split(arrivals.by_time())
        updates = [self._small.advance(small, until)]
        updates += [self._large[group].step(mine, until) for group, mine in large.items()]
        self._drop_empty()
        return Updates.merged(updates)

    def currents(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
        arrivals.check(self.d, (self.clock, clocks[-1]), grouped=True)
        small, large = self._split(arrivals)
        parts = [self._small.currents(small, clocks)]
        parts += [self._large[group].currents(mine, clocks) for group, mine in large.items()]
        self._drop_empty()
        return [ascending(np.concatenate(rows)) for rows in zip(*parts, strict=True)] if large else parts[0]

    def stays(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> WindowStays:
        arrivals.check(self.d, (self.clock, clocks[-1]), grouped=True)
        small, large = self._split(arrivals)
        parts = [self._small.stays(small, clocks)]
        parts += [self._large[group].stays(mine, clocks) for group, mine in large.items()]
        self._drop_empty()
        return WindowStays.joined(parts)

    def current(self) -> IntArray:
        return ascending(np.concatenate([front.current() for front in self._all()]))

    def kept(self) -> IntArray:
        return ascending(np.concatenate([front.kept() for front in self._all()]))

    def __len__(self) -> int:
        return sum(map(len, self._all()))

    def snapshot(self) -> FrontContents:
        parts = [self._small.snapshot()]
        for group, front in self._large.items():
            stored = front.snapshot()
            parts.append(stored._replace(groups=np.full(len(stored.rows), group)))
        return joined(parts)

    def _all(self) -> list[FrontOperator]:
        return [self._small, *self._large.values()]

    def _split(self, arrivals: NewPoints) -> _SplitArrivals:
        groups = group_numbers(arrivals)
        large = self._is_large(groups)
        if self._promote(groups[~large]):
            large = self._is_large(groups)
        if not self._large:
            return _SplitArrivals(arrivals, {})
        return _SplitArrivals(arrivals.at(~large), self._by_group(arrivals.at(large), groups[large]))

    def _is_large(self, groups: IntArray) -> BoolArray:
        return np.isin(groups, [*self._large]) if self._large else np.zeros(len(groups), np.bool_)

    def _promote(self, coming: IntArray) -> bool:
        """Give each group that becomes large with these arrivals its own Front; return whether any does."""
        promoted = self._small.groups_above(LARGE, coming).tolist()
        for group in promoted:
            self._large[group] = Front.restore(self._small.pop(group), self.window)
        return bool(promoted)

    def _by_group(self, arrivals: NewPoints, groups: IntArray) -> dict[int, NewPoints]:
        """Return the arrivals of each large group, which may be empty."""
        order = np.argsort(groups, kind="stable")
        arrivals, groups = arrivals._replace(groups=None).at(order), groups[order]
        large = sorted(self._large)
        edges = np.searchsorted(groups, [*large, np.iinfo(np.int64).max]).tolist()
        return {group: arrivals.at(slice(*edge)) for group, edge in zip(large, pairwise(edges), strict=True)}

    def _drop_empty(self) -> None:
        self._large = {group: front for group, front in self._large.items() if len(front)}
