"""A front whose form can change between two steps: whole, or in as many shards as a plan requests, in place or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self, TypeAlias

from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import FrontContents, FrontOperator, NewPoints, Updates
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.resident_fronts import ResidentFront, ResidentGroups, ResidentOperator
from skypane.operators.fronts.sharded_fronts import ShardedFront, ShardedGroups, ShardedOperator
from skypane.operators.fronts.shards import UNSHARDED, ShardPlan
from skypane.operators.stays import WindowStays
from skypane.types import IntArray, Micros

_Form: TypeAlias = type[Front | GroupedFronts | ShardedOperator | ResidentOperator[Any]]

_POINTS: Final[tuple[_Form, _Form, _Form]] = (Front, ShardedFront, ResidentFront)
"""The forms of one front: whole, in shards without state, in shards that stay in this process."""

_GROUPS: Final[tuple[_Form, _Form, _Form]] = (GroupedFronts, ShardedGroups, ResidentGroups)
"""The same forms of fronts by group."""


class RescalableFront(FrontOperator):
    """One front, or fronts by group; each form continues from the snapshot of the one before."""

    def __init__(self, d: int, window: Micros, *, grouped: bool) -> None:
        self.window = window
        self._form: FrontOperator = GroupedFronts(d, window) if grouped else Front(d, window)
        self._grouped = grouped

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros, plan: ShardPlan = UNSHARDED) -> Self:
        """Return a front in the form of a plan that continues from a snapshot()."""
        front = cls(stored.points.shape[1], window, grouped=stored.groups is not None)
        front._form = front._in_form(plan, stored)
        return front

    def rescale(self, plan: ShardPlan) -> None:
        """Use this plan from the next step on."""
        if not isinstance(self._form, self._form_of(plan)):
            self._form = self._in_form(plan, self.snapshot())
        elif isinstance(self._form, ShardedOperator | ResidentOperator):
            self._form.rescale(plan)

    @property
    def resident(self) -> int:
        """The number of shards that stay in this process; 0 if the front has another form."""
        return self._form.shards if isinstance(self._form, ResidentOperator) else 0

    def _form_of(self, plan: ShardPlan) -> _Form:
        whole, stateless, resident = _GROUPS if self._grouped else _POINTS
        if not plan.shards:
            return whole
        return stateless if plan.in_place is None else resident

    def _in_form(self, plan: ShardPlan, stored: FrontContents) -> FrontOperator:
        form = self._form_of(plan)
        if issubclass(form, ShardedOperator | ResidentOperator):
            return form.restore(stored, self.window, plan)
        return form.restore(stored, self.window)

    @property
    def clock(self) -> Micros:
        return self._form.clock

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        return self._form.step(arrivals, until)

    def currents(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
        self.rescale(UNSHARDED)
        return self._form.currents(arrivals, clocks)

    def stays(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> WindowStays:
        self.rescale(UNSHARDED)
        return self._form.stays(arrivals, clocks)

    def current(self) -> IntArray:
        return self._form.current()

    def kept(self) -> IntArray:
        return self._form.kept()

    def snapshot(self) -> FrontContents:
        return self._form.snapshot()

    def __len__(self) -> int:
        return len(self._form)
