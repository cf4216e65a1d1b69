"""Fronts whose shards stay in this process: points and indexes are built once, and threads compare arrivals with them.

Points in shards (ResidentFront): a step has two parts, and in each of them the shards run at the same time:

    start     each shard takes all arrivals, stores those that it owns, and returns the start of each arrival as far as
              its own points determine it; the start on the whole front is the maximum over the shards (paper 4, section 4)
    finish    each shard gets these starts, and returns the updates of its own points

The end of a point needs no reduction: all later arrivals pass the shard that stores it. A shard stores as many arrivals
as bring it nearest to the size of the others, and keeps them for the rest of their stay.

Groups in shards (ResidentGroups): a shard has a range of groups, whose updates are final. A new group goes to the
shards in turn; when the points have doubled, all groups are divided again by their sizes.

Only numbers go from one thread to another. The shards have no other state than any form of a front, so that each form
continues from the snapshot of the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from skypane.kernels.influence import START
from skypane.operators.fronts.front import MANY
from skypane.operators.fronts.front_operator import (
    FrontContents,
    FrontOperator,
    NewPoints,
    Updates,
    ascending,
    check_window,
    group_numbers,
    joined,
)
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.prefilter import StrongPoint, passing
from skypane.operators.fronts.sharded_fronts import dealt, owners_by_load
from skypane.operators.fronts.shards import ParallelMap, PartFront, Runs, ShardPlan
from skypane.types import IntArray, Micros

ONE_IN_PLACE: Final = ShardPlan(1, in_place=map)

_GROWN: Final = 10_000
"""Number of points beyond twice those of the last division at which groups are divided again."""

_Shard = TypeVar("_Shard", bound=FrontOperator)


class _Stays(NamedTuple):
    rows: IntArray
    starts: IntArray
    ends: IntArray


class ResidentShard(PartFront):
    """A part of the points of a front, whose row numbers are at least 0.

    Between starts_of() and finish(), arrival i has the row number ~i.
    """

    def __init__(self, d: int, window: Micros) -> None:
        super().__init__(d, window)
        self._starts: IntArray = np.empty(0, np.int64)
        #: the stays of points discarded in this step to make room
        self._discarded: list[_Stays] = []

    def starts_of(self, arrivals: NewPoints, owned: Runs, until: Micros) -> IntArray:
        """Compare arrivals, in order of time, and store those owned; return their starts by the points here, (n,)."""
        self._starts = np.empty(len(arrivals.rows), np.int64)
        self.compare(arrivals._replace(rows=~np.arange(len(arrivals.rows))), owned, until)
        return self._starts

    def finish(self, starts: IntArray, rows: IntArray, span: tuple[Micros, Micros]) -> list[Updates]:
        """Set the starts of all arrivals, (n,), and their row numbers; return the updates of the points here."""
        slots = _Stays(self._rows[: self._size], *self._slots.clocks[START:, : self._size])
        parts = [*self._discarded, slots]
        self._discarded = []
        for part in parts:
            at = np.flatnonzero(part.rows < 0)
            arrivals = ~part.rows[at]
            part.starts[at], part.rows[at] = starts[arrivals], rows[arrivals]
        return [Updates.of_stays(*part, span) for part in parts]

    def _note(self, rows: IntArray, starts: IntArray) -> None:
        self._starts[~rows] = starts

    def _absorb(self, arrivals: NewPoints, *, apart: bool) -> None:
        begin = self._size
        super()._absorb(arrivals, apart=apart)
        self._note(self._rows[begin : self._size], self._slots.clocks[START, begin : self._size])

    def _make_room(self, span: tuple[Micros, Micros]) -> Updates:
        needed = self._needed()
        _, starts, ends = self._slots.clocks[:, : self._size]
        self._discarded.append(_Stays(self._rows[: self._size][~needed], starts[~needed], ends[~needed]))
        self._compact(needed)
        none = np.empty(0, np.int64)
        return Updates.of_stays(none, none, none, span)  # finish() returns them, when their starts are known


class ResidentOperator(FrontOperator, Generic[_Shard]):
    """A front whose points are in shards of this process, as many as a plan requests."""

    def __init__(self, stored: FrontContents, window: Micros, plan: ShardPlan) -> None:
        self.window = check_window(window)
        self._d = stored.points.shape[1]
        self._plan = plan
        self._clock = stored.clock
        self._shards = self._dealt(stored)

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros, plan: ShardPlan = ONE_IN_PLACE) -> Self:
        """Return a front that continues from a snapshot()."""
        return cls(stored, window, plan)

    @abstractmethod
    def _dealt(self, stored: FrontContents) -> list[_Shard]:
        """Return the shards of the plan, with these points."""

    def rescale(self, plan: ShardPlan) -> None:
        """Use another plan, with at least one shard in place, from the next step on."""
        again = plan.shards != self._plan.shards
        self._plan = plan
        if again:
            self._shards = self._dealt(self.snapshot())

    @property
    def _run(self) -> ParallelMap:
        return self._plan.in_place or map

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self._shards)

    @property
    def clock(self) -> Micros:
        return self._clock

    def current(self) -> IntArray:
        return ascending(np.concatenate([shard.current() for shard in self._shards]))

    def kept(self) -> IntArray:
        return ascending(np.concatenate([shard.kept() for shard in self._shards]))

    def __len__(self) -> int:
        return sum(map(len, self._shards))


class ResidentFront(ResidentOperator[ResidentShard]):
    """One front, with its points in shards of this process."""

    _strong: StrongPoint | None = None

    def snapshot(self) -> FrontContents:
        stored = joined([shard.snapshot() for shard in self._shards])
        return stored.at(np.argsort(stored.times, kind="stable"))

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        span = (self._clock, until)
        arrivals.check(self._d, span, grouped=False)
        arrivals = self._filtered(arrivals.by_time())
        runs = owned_runs(len(arrivals.rows), [len(shard) for shard in self._shards])
        found = list(self._run(lambda shard, owned: shard.starts_of(arrivals, owned, until), self._shards, runs))
        starts = np.maximum.reduce(found)
        parts = self._run(lambda shard: shard.finish(starts, arrivals.rows, span), self._shards)
        self._clock = until
        return Updates.merged([*chain(*parts)])

    def _dealt(self, stored: FrontContents) -> list[ResidentShard]:
        parts = dealt(stored, self._plan.shards)
        return list(self._run(lambda part: ResidentShard.restore(part, self.window), parts))

    def _filtered(self, arrivals: NewPoints) -> NewPoints:
        """Drop the arrivals that are never on the front; arrivals are in order of time."""
        if len(arrivals.rows) < MANY:
            return arrivals
        unseen, self._strong = passing(arrivals.points, arrivals.times, self._strong, self.window)
        return arrivals.at(np.flatnonzero(~unseen))


class ResidentGroups(ResidentOperator[GroupedFronts]):
    """Fronts by group, with whole groups in shards of this process."""

    def snapshot(self) -> FrontContents:
        return joined([shard.snapshot() for shard in self._shards])

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        arrivals.check(self._d, (self._clock, until), grouped=True)
        owners = self._owners_of(group_numbers(arrivals))
        parts = [arrivals.at(owners == shard) for shard in range(len(self._shards))]
        updates = list(self._run(lambda shard, part: shard.step(part, until), self._shards, parts))
        self._clock = until
        if len(self) > 2 * self._divided + _GROWN:
            self._shards = self._dealt(self.snapshot())
        return Updates.merged(updates)

    def _dealt(self, stored: FrontContents) -> list[GroupedFronts]:
        shards, groups = self._plan.shards, group_numbers(stored)
        sizes = np.bincount(groups).astype(np.float64)
        #: the shard of each group, and the number of points by whose groups they were chosen
        self._owners = owners_by_load(sizes * sizes, shards)
        self._divided = len(groups)
        owners = self._owners[groups]
        parts = [stored.at(owners == shard) for shard in range(shards)]
        return list(self._run(lambda part: GroupedFronts.restore(part, self.window), parts))

    def _owners_of(self, groups: IntArray) -> IntArray:
        """Return the shard of each group; new groups go to the shards in turn."""
        first = len(self._owners)
        new = np.arange(first, int(groups.max(initial=first - 1)) + 1) % len(self._shards)
        self._owners = np.concatenate([self._owners, new])
        owners: IntArray = self._owners[groups]
        return owners


def owned_runs(n: int, sizes: Sequence[int]) -> list[Runs]:
    """Return two runs of n arrivals for each shard, given the sizes of the shards, which become as equal as possible.

    A shard gets one run from the beginning and one from the end: points stored early are visited by more arrivals than
    points stored late, and this balances them. The smallest shard gets the last run, of which most points remain.
    """
    quotas = _quotas(n, sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    early = [quotas[shard] // 2 for shard in order]
    late = [quotas[shard] - half for shard, half in zip(order, early, strict=True)]
    runs = list(pairwise(np.cumsum([0, *early, *reversed(late)]).tolist()))
    owned = {shard: (runs[place], runs[-1 - place]) for place, shard in enumerate(order)}
    return [owned[shard] for shard in range(len(sizes))]


def _quotas(n: int, sizes: Sequence[int]) -> list[int]:
    """Return how many of n arrivals each shard stores: the smallest shards are filled up to a common level."""
    ordered = sorted(sizes)
    filled = next(m for m in range(1, len(ordered) + 1) if m == len(ordered) or _level(n, ordered[:m]) <= ordered[m])
    level = _level(n, ordered[:filled])
    quotas = [max(0, level - size) for size in sizes]
    left = n - sum(quotas)
    for shard in sorted(range(len(sizes)), key=sizes.__getitem__)[:left]:
        quotas[shard] += 1
    return quotas


def _level(n: int, sizes: Sequence[int]) -> int:
    """Return the size, rounded down, that these shards have when n more points are divided among them."""
    return (n + sum(sizes)) // len(sizes)
