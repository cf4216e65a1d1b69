"""Fronts whose points are in shards, as many as a plan requests; responses of shards are combined (paper 4, section 4).

Points in shards (ShardedFront): each shard processes all arrivals of a step, and

    SIT(p)   = max over shards of SIT by the points of the shard
    prune(p) = min over shards

During a step, each arrival is stored in one shard and visits the others, where it is compared with the stored points in
order of time. Each pair of points is thus compared in one shard. New points that remain after a step go to the shard
with the fewest points (LLW+: points that it has just received are counted too).

Groups in shards (ShardedGroups): a shard has all points of its groups, so its response is final. Each step assigns
groups to shards by the number of pairs of points to compare: the largest first, each to the shard with the least load
so far.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Self

import numpy as np

from skypane.operators.fronts.front_operator import (
    FrontContents,
    FrontOperator,
    NewPoints,
    Updates,
    check_window,
    group_numbers,
    joined,
)
from skypane.operators.fronts.shards import (
    GroupShardRequest,
    GroupShardResponse,
    Runs,
    ShardPlan,
    ShardRequest,
    Spans,
)
from skypane.types import FloatArray, IntArray, Micros

ONE_SHARD: Final = ShardPlan(1)

_WEIGHED: Final = 1_000
"""Number of groups, the largest ones, that are assigned by load."""


class ShardedOperator(FrontOperator):
    """A front whose points are divided among the shards of a plan; between steps they are in this process."""

    #: all points, in one part or more: those of a ShardedFront are its shards, each in order of arrival
    parts: list[FrontContents]

    def __init__(self, stored: FrontContents, window: Micros, plan: ShardPlan) -> None:
        self.window = check_window(window)
        self.parts = [stored]
        self._plan = plan

    @classmethod
    def restore(cls, stored: FrontContents, window: Micros, plan: ShardPlan = ONE_SHARD) -> Self:
        """Return a front that continues from a snapshot()."""
        return cls(stored, window, plan)

    @abstractmethod
    def rescale(self, plan: ShardPlan) -> None:
        """Use another plan, with at least one shard, from the next step on."""

    @property
    def clock(self) -> Micros:
        return self.parts[0].clock

    def current(self) -> IntArray:
        return np.sort(np.concatenate([part.rows[part.starts < self.clock] for part in self.parts]))

    def kept(self) -> IntArray:
        return np.sort(np.concatenate([part.rows for part in self.parts]))

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self.parts)


class ShardedFront(ShardedOperator):
    """One front, with its points in shards."""

    def __init__(self, stored: FrontContents, window: Micros, plan: ShardPlan) -> None:
        super().__init__(stored, window, plan)
        self.parts = dealt(stored, plan.shards)

    def snapshot(self) -> FrontContents:
        stored = joined(self.parts)
        return stored.at(np.argsort(stored.times, kind="stable"))

    def rescale(self, plan: ShardPlan) -> None:
        if plan.shards != self._plan.shards:
            self.parts = dealt(self.snapshot(), plan.shards)
        self._plan = plan

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        span = (self.clock, until)
        arrivals.check(self.parts[0].points.shape[1], span, grouped=False)
        arrivals = arrivals.by_time()
        requests = [
            ShardRequest(shard, arrivals, runs, self.window, until)
            for shard, runs in zip(self.parts, _runs(len(arrivals.rows), self._plan.shards), strict=True)
        ]
        spans = list(self._plan.run_shards(requests))
        arrived = [found.at(slice(len(shard.rows), None)) for shard, found in zip(self.parts, spans, strict=True)]
        new = Spans(
            np.stack([found.starts for found in arrived]).max(axis=0),
            np.stack([found.ends for found in arrived]).min(axis=0),
        )
        updates = [Updates.of_stays(arrivals.rows, *new, span)]
        kept = []
        for shard, found in zip(self.parts, spans, strict=True):
            ends = found.ends[: len(shard.rows)]
            updates.append(Updates.of_stays(shard.rows, shard.starts, ends, span))
            kept.append(shard.at(ends >= until)._replace(clock=until))
        fresh = FrontContents(arrivals.points, arrivals.times, arrivals.rows, new.starts, until)
        self.parts = _assigned(kept, fresh.at(new.ends >= until))
        return Updates.merged(updates)


class ShardedGroups(ShardedOperator):
    """Fronts by group, with whole groups in shards."""

    def snapshot(self) -> FrontContents:
        return self.parts[0]

    def rescale(self, plan: ShardPlan) -> None:
        self._plan = plan

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        stored, plan = self.parts[0], self._plan
        arrivals.check(stored.points.shape[1], (self.clock, until), grouped=True)
        present, codes = np.unique(
            np.concatenate([group_numbers(stored), group_numbers(arrivals)]), return_inverse=True
        )
        known, new = codes[: len(stored.rows)], codes[len(stored.rows) :]
        owners = owners_by_load(_pairs(known, new, len(present)), plan.shards)
        requests = [
            GroupShardRequest(stored.at(owners[known] == shard), arrivals.at(owners[new] == shard), self.window, until)
            for shard in range(plan.shards)
        ]
        responses = list(plan.run_group_shards(requests))
        points, times, rows, groups = arrivals
        fresh = FrontContents(points, times, rows, times, until, groups)
        self.parts = [_remaining(joined([stored._replace(clock=until), fresh]), responses)]
        return Updates.merged([response.updates for response in responses])


def _remaining(points: FrontContents, responses: Sequence[GroupShardResponse]) -> FrontContents:
    """Return the points that the responses name, with the starts that they give."""
    rows = np.concatenate([response.rows for response in responses])
    by_row = np.argsort(points.rows, kind="stable")
    at = by_row[np.searchsorted(points.rows, rows, sorter=by_row)]
    return points.at(at)._replace(starts=np.concatenate([response.starts for response in responses]))


def dealt(stored: FrontContents, shards: int) -> list[FrontContents]:
    """Deal points, which are in order of arrival, to the shards in turn."""
    return [stored.at(slice(first, None, shards)) for first in range(shards)]


def _assigned(shards: list[FrontContents], new: FrontContents) -> list[FrontContents]:
    """Assign new points, younger than all stored ones, to the shard with the fewest points, one after the other."""
    owners = _least_loaded(np.array([len(shard.rows) for shard in shards]), len(new.rows))
    return [joined([shard, new.at(owners == index)]) for index, shard in enumerate(shards)]


def _runs(n: int, shards: int) -> list[Runs]:
    """Return the two runs of n arrivals that each shard stores: of six runs, the first and the last, then inward.

    Points stored early are visited by more arrivals than points stored late; an early and a late run balance this.
    """
    bounds = [n * part // (2 * shards) for part in range(2 * shards + 1)]
    runs = list(pairwise(bounds))
    return [(runs[shard], runs[-1 - shard]) for shard in range(shards)]


def _least_loaded(loads: IntArray, n: int) -> IntArray:
    """Return the owner of each of n points: the least loaded worker when the point is assigned, the first of equals."""
    levels = np.arange(n)[:, None] + loads  # a worker gets its k-th point when its load is loads + k
    order = np.lexsort((np.broadcast_to(np.arange(len(loads)), levels.shape).ravel(), levels.ravel()))[:n]
    owners: IntArray = order % len(loads)
    return owners


def _pairs(known: IntArray, new: IntArray, groups: int) -> FloatArray:
    """Return the pairs to compare in each group: arrivals with stored points, and half of those among arrivals."""
    arriving = np.bincount(new, minlength=groups)
    pairs: FloatArray = arriving * (np.bincount(known, minlength=groups) + arriving / 2 + 1)
    return pairs


def owners_by_load(loads: FloatArray, shards: int) -> IntArray:
    """Return the shard of each group, by load; the many small groups after the first ones are dealt in turn."""
    order = np.argsort(-loads, kind="stable")
    owners = np.empty(len(loads), np.int64)
    owners[order] = np.arange(len(loads)) % shards
    heap = [(0.0, shard) for shard in range(shards)]
    for group in order[:_WEIGHED].tolist():
        load, shard = heap[0]
        owners[group] = shard
        heapq.heapreplace(heap, (load + float(loads[group]), shard))
    return owners
