"""Fronts by group in shards: a shard has all points of its groups, so its response needs no reduce.

Each step assigns groups to shards by the number of pairs of points to compare: the largest first, each to the shard
with the least load so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.operators.fronts.front import FrontContents, NewPoints, check_arrivals, joined
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.updates import Updates
from skypane.types import FloatArray, IntArray, Micros

_WEIGHED: Final = 1_000
"""Number of groups, the largest ones, that are assigned by load."""


class GroupShardRequest(NamedTuple):
    """The input of one shard: the points of its groups, their arrivals of [clock, until), and the group of each."""

    stored: FrontContents
    stored_groups: IntArray
    arrivals: NewPoints
    arrival_groups: IntArray
    window: Micros
    until: Micros


class GroupShardResponse(NamedTuple):
    """The output of one shard: its updates, and the points stored after the step: row numbers and times of entry."""

    updates: Updates
    rows: IntArray
    starts: IntArray


def answer_groups(request: GroupShardRequest) -> GroupShardResponse:
    """Return the response of one shard."""
    stored, stored_groups, arrivals, arrival_groups, window, until = request
    fronts = GroupedFronts.restore(stored, stored_groups, window)
    updates = fronts.step(arrivals, arrival_groups, until)
    left, _ = fronts.snapshot()
    return GroupShardResponse(updates, left.rows, left.starts)


AskGroups: TypeAlias = Callable[[Sequence[GroupShardRequest]], Iterable[GroupShardResponse]]


def groups_one_by_one(requests: Sequence[GroupShardRequest]) -> Iterable[GroupShardResponse]:
    """Run the shards in this process, one after the other."""
    return map(answer_groups, requests)


class ShardedGroups:
    """Fronts as in grouped_fronts.py, with points that are not indexed; each step sets the number of shards."""

    def __init__(self, stored: FrontContents, groups: IntArray, window: Micros) -> None:
        self.window = window
        self._stored = stored
        self._groups = groups

    @classmethod
    def of(cls, fronts: GroupedFronts) -> Self:
        """Return sharded fronts that continue from `fronts`."""
        return cls(*fronts.snapshot(), fronts.window)

    def whole(self) -> GroupedFronts:
        """Return fronts that continue from these."""
        return GroupedFronts.restore(self._stored, self._groups, self.window)

    def snapshot(self) -> tuple[FrontContents, IntArray]:
        """Return the state to remember, as GroupedFronts.snapshot."""
        return self._stored, self._groups

    @property
    def clock(self) -> Micros:
        """The time before which all updates have been returned."""
        return self._stored.clock

    def __len__(self) -> int:
        """Return the number of points stored in all groups."""
        return len(self._groups)

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        return np.sort(self._stored.rows[self._stored.starts < self.clock])

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(self._stored.rows)

    def step(
        self, arrivals: NewPoints, groups: IntArray, until: Micros, shards: int = 1, ask: AskGroups = groups_one_by_one
    ) -> Updates:
        """Take the arrivals of [clock, until), with the group of each, in shards; return the updates of that span."""
        stored = self._stored
        check_arrivals(arrivals, stored.points.shape[1], (stored.clock, until))
        present, codes = np.unique(np.concatenate([self._groups, groups]), return_inverse=True)
        known, new = codes[: len(self._groups)], codes[len(self._groups) :]
        owners = _owners(_pairs(known, new, len(present)), shards)
        requests = []
        for shard in range(shards):
            old, fresh = owners[known] == shard, owners[new] == shard
            requests.append(
                GroupShardRequest(
                    stored.at(old), self._groups[old], arrivals.at(fresh), groups[fresh], self.window, until
                )
            )
        responses = list(ask(requests))
        fresh_points = FrontContents(arrivals.points, arrivals.times, arrivals.rows, arrivals.times, until)
        self._keep(
            joined([stored._replace(clock=until), fresh_points]), np.concatenate([self._groups, groups]), responses
        )
        return Updates.merged([response.updates for response in responses])

    def _keep(self, points: FrontContents, groups: IntArray, responses: Sequence[GroupShardResponse]) -> None:
        """Keep the points that the responses name, with the starts that they give."""
        rows = np.concatenate([response.rows for response in responses])
        by_row = np.argsort(points.rows, kind="stable")
        at = by_row[np.searchsorted(points.rows, rows, sorter=by_row)]
        self._stored = points.at(at)._replace(starts=np.concatenate([response.starts for response in responses]))
        self._groups = groups[at]


def _pairs(known: IntArray, new: IntArray, groups: int) -> FloatArray:
    """Return the pairs to compare in each group: arrivals with stored points, and half of those among arrivals."""
    arriving = np.bincount(new, minlength=groups)
    pairs: FloatArray = arriving * (np.bincount(known, minlength=groups) + arriving / 2 + 1)
    return pairs


def _owners(loads: FloatArray, shards: int) -> IntArray:
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
