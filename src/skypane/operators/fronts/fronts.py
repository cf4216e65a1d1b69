"""One front, or one for each group, in the form that a step requests: whole and indexed, or in shards.

Each form can continue from any other, so the caller can choose again in each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.operators.fronts.front import Front, FrontContents, NewPoints
from skypane.operators.fronts.group_shards import AskGroups, ShardedGroups, groups_one_by_one
from skypane.operators.fronts.grouped_fronts import GroupedFronts, currents_of
from skypane.operators.fronts.shards import Ask, ShardedFront, one_by_one
from skypane.operators.fronts.updates import Updates
from skypane.types import IntArray, Micros


class ShardPlan(NamedTuple):
    """The number of shards, and the functions that run them; with 0 shards the front is whole."""

    shards: int = 0
    ask: Ask = one_by_one
    ask_groups: AskGroups = groups_one_by_one


UNSHARDED: Final = ShardPlan()

_Form: TypeAlias = Front | ShardedFront | GroupedFronts | ShardedGroups


class Fronts:
    """The front of points with d criteria, or the front of each group of points."""

    def __init__(self, d: int, window: Micros, *, grouped: bool) -> None:
        self._form: _Form = GroupedFronts(d, window) if grouped else Front(d, window)

    @classmethod
    def restore(cls, stored: FrontContents, groups: IntArray | None, window: Micros) -> Self:
        """Return fronts that continue from a snapshot()."""
        fronts = cls(stored.points.shape[1], window, grouped=groups is not None)
        fronts._form = (
            Front.restore(stored, window) if groups is None else GroupedFronts.restore(stored, groups, window)
        )
        return fronts

    def snapshot(self) -> tuple[FrontContents, IntArray | None]:
        """Return the state to remember, and the group of each point, None without groups."""
        form = self._form
        if isinstance(form, GroupedFronts | ShardedGroups):
            return form.snapshot()
        return form.snapshot(), None

    @property
    def clock(self) -> Micros:
        """The time before which all updates have been returned."""
        return self._form.clock

    def __len__(self) -> int:
        """Return the number of points stored."""
        return len(self._form)

    def current(self) -> IntArray:
        """Return the rows on the front, ascending, as Front.current."""
        return self._form.current()

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return self._form.kept()

    def step(
        self, arrivals: NewPoints, groups: IntArray | None, until: Micros, sharding: ShardPlan = UNSHARDED
    ) -> Updates:
        """Take the arrivals of [clock, until), with `groups` if there are groups; return the updates of that span."""
        form = self._form = _in_shards(self._form) if sharding.shards else _whole(self._form)
        groups = np.empty(0, np.int64) if groups is None else groups
        if isinstance(form, ShardedFront):
            return form.step(arrivals, until, sharding.shards, sharding.ask)
        if isinstance(form, ShardedGroups):
            return form.step(arrivals, groups, until, sharding.shards, sharding.ask_groups)
        return form.step(arrivals, until) if isinstance(form, Front) else form.step(arrivals, groups, until)

    def currents(self, arrivals: NewPoints, groups: IntArray | None, clocks: Sequence[Micros]) -> list[IntArray]:
        """Take the arrivals of [clock, clocks[-1]), in order of time; return current() at each clock."""
        form = self._form = _whole(self._form)
        if isinstance(form, Front):
            return currents_of(form, arrivals, clocks)
        return form.currents(arrivals, np.empty(0, np.int64) if groups is None else groups, clocks)


def _whole(form: _Form) -> Front | GroupedFronts:
    return form.whole() if isinstance(form, ShardedFront | ShardedGroups) else form


def _in_shards(form: _Form) -> ShardedFront | ShardedGroups:
    if isinstance(form, ShardedFront | ShardedGroups):
        return form
    return ShardedFront.of(form) if isinstance(form, Front) else ShardedGroups.of(form)
