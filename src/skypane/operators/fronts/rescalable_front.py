"""A front whose form can change between two steps: whole and indexed, or in as many shards as a plan requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import FrontContents, FrontOperator, NewPoints, Updates
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.sharded_fronts import ShardedFront, ShardedGroups, ShardedOperator
from skypane.operators.fronts.shards import UNSHARDED, ShardPlan
from skypane.types import IntArray, Micros


class RescalableFront(FrontOperator):
    """One front, or fronts by group; each form continues from the snapshot of the one before."""

    def __init__(self, d: int, window: Micros, *, grouped: bool) -> None:
        self.window = window
        self._form: FrontOperator = GroupedFronts(d, window) if grouped else Front(d, window)
        #: the form if it is in shards
        self._sharded: ShardedOperator | None = None

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros) -> Self:
        """Return a whole front that continues from a snapshot()."""
        front = cls(stored.points.shape[1], window, grouped=stored.groups is not None)
        front._form = _whole(stored, window)
        return front

    def rescale(self, plan: ShardPlan) -> None:
        """Use this plan from the next step on."""
        if not plan.shards:
            if self._sharded is not None:
                self._form, self._sharded = _whole(self.snapshot(), self.window), None
        elif self._sharded is None:
            self._form = self._sharded = _in_shards(self.snapshot(), self.window, plan)
        else:
            self._sharded.rescale(plan)

    @property
    def clock(self) -> Micros:
        return self._form.clock

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        return self._form.step(arrivals, until)

    def currents(self, arrivals: NewPoints, clocks: Sequence[Micros]) -> list[IntArray]:
        self.rescale(UNSHARDED)
        return self._form.currents(arrivals, clocks)

    def current(self) -> IntArray:
        return self._form.current()

    def kept(self) -> IntArray:
        return self._form.kept()

    def snapshot(self) -> FrontContents:
        return self._form.snapshot()

    def __len__(self) -> int:
        return len(self._form)


def _whole(stored: FrontContents, window: Micros) -> FrontOperator:
    return Front.restore(stored, window) if stored.groups is None else GroupedFronts.restore(stored, window)


def _in_shards(stored: FrontContents, window: Micros, plan: ShardPlan) -> ShardedOperator:
    return (ShardedFront if stored.groups is None else ShardedGroups).restore(stored, window, plan)
