"""One front, or one for each group, in the form that a step asks for: whole and indexed, or in shards that are asked.

Each form goes on where another one is, so that whoever steps it may choose anew each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.operators.continuous.front import Arrivals, Front, Stored
from skypane.operators.continuous.group_shards import AskGroups, ShardedGroups, groups_one_by_one
from skypane.operators.continuous.groups import GroupedFronts, currents_of
from skypane.operators.continuous.shards import Ask, ShardedFront, one_by_one
from skypane.operators.continuous.updates import Updates
from skypane.types import IntArray, Micros


class Asking(NamedTuple):
    """How many shards are asked, and by what; none: nobody is, the front is whole."""

    shards: int = 0
    ask: Ask = one_by_one
    ask_groups: AskGroups = groups_one_by_one


NOBODY: Final = Asking()

_Form: TypeAlias = Front | ShardedFront | GroupedFronts | ShardedGroups


class Fronts:
    """The front of points of d criteria, or of each group of them."""

    def __init__(self, d: int, window: Micros, *, grouped: bool) -> None:
        self._form: _Form = GroupedFronts(d, window) if grouped else Front(d, window)

    @classmethod
    def restore(cls, stored: Stored, groups: IntArray | None, window: Micros) -> Self:
        """Return what goes on where that which gave `stored` and `groups` was."""
        fronts = cls(stored.points.shape[1], window, grouped=groups is not None)
        fronts._form = (
            Front.restore(stored, window) if groups is None else GroupedFronts.restore(stored, groups, window)
        )
        return fronts

    def snapshot(self) -> tuple[Stored, IntArray | None]:
        """Return all that must be remembered, and the group of each point, None if there are none."""
        form = self._form
        if isinstance(form, GroupedFronts | ShardedGroups):
            return form.snapshot()
        return form.snapshot(), None

    @property
    def clock(self) -> Micros:
        """Updates before are told."""
        return self._form.clock

    def __len__(self) -> int:
        """Count the points stored."""
        return len(self._form)

    def current(self) -> IntArray:
        """Return the rows on the front, ascending, as Front.current."""
        return self._form.current()

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return self._form.kept()

    def step(self, arrivals: Arrivals, groups: IntArray | None, until: Micros, asking: Asking = NOBODY) -> Updates:
        """Take the arrivals of [clock, until), each of a group if there are groups; return the updates of that span."""
        form = self._form = _in_shards(self._form) if asking.shards else _whole(self._form)
        groups = np.empty(0, np.int64) if groups is None else groups
        if isinstance(form, ShardedFront):
            return form.step(arrivals, until, asking.shards, asking.ask)
        if isinstance(form, ShardedGroups):
            return form.step(arrivals, groups, until, asking.shards, asking.ask_groups)
        return form.step(arrivals, until) if isinstance(form, Front) else form.step(arrivals, groups, until)

    def currents(self, arrivals: Arrivals, groups: IntArray | None, clocks: Sequence[Micros]) -> list[IntArray]:
        """Take the arrivals of [clock, clocks[-1]), in order of time; return what current() is at each clock in turn."""
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
