"""Fronts by group in shards: a shard has all points of its groups, so that its answer needs no reduce.

In each step groups are given to shards by the pairs of points that are to be compared, the largest first, each to the shard
with the least so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.operators.continuous.front import Arrivals, Stored, check_arrivals, joined
from skypane.operators.continuous.groups import GroupedFronts
from skypane.operators.continuous.updates import Updates
from skypane.types import FloatArray, IntArray, Micros

_WEIGHED: Final = 1_000
"""Groups whose loads are weighed."""


class GroupQuestion(NamedTuple):
    """What one shard is asked: the points of its groups, the arrivals of [clock, until) in them, and the group of each."""

    stored: Stored
    stored_groups: IntArray
    arrivals: Arrivals
    arrival_groups: IntArray
    window: Micros
    until: Micros


class GroupAnswer(NamedTuple):
    """What one shard tells, and what is stored of it then: row numbers, and when each enters."""

    updates: Updates
    rows: IntArray
    starts: IntArray


def answer_groups(question: GroupQuestion) -> GroupAnswer:
    """Return what the groups of one shard tell."""
    stored, stored_groups, arrivals, arrival_groups, window, until = question
    fronts = GroupedFronts.restore(stored, stored_groups, window)
    updates = fronts.step(arrivals, arrival_groups, until)
    left, _ = fronts.snapshot()
    return GroupAnswer(updates, left.rows, left.starts)


AskGroups: TypeAlias = Callable[[Sequence[GroupQuestion]], Iterable[GroupAnswer]]


def groups_one_by_one(questions: Sequence[GroupQuestion]) -> Iterable[GroupAnswer]:
    """Ask here and now."""
    return map(answer_groups, questions)


class ShardedGroups:
    """Fronts as in groups.py, their points without an index: each step says how many shards are asked for them."""

    def __init__(self, stored: Stored, groups: IntArray, window: Micros) -> None:
        self.window = window
        self._stored = stored
        self._groups = groups

    @classmethod
    def of(cls, fronts: GroupedFronts) -> Self:
        """Return what goes on where fronts are."""
        return cls(*fronts.snapshot(), fronts.window)

    def whole(self) -> GroupedFronts:
        """Return fronts that go on where these are."""
        return GroupedFronts.restore(self._stored, self._groups, self.window)

    def snapshot(self) -> tuple[Stored, IntArray]:
        """Return what must be remembered, as GroupedFronts.snapshot."""
        return self._stored, self._groups

    @property
    def clock(self) -> Micros:
        """Updates before are told."""
        return self._stored.clock

    def __len__(self) -> int:
        """Count the points stored, of all groups."""
        return len(self._groups)

    def current(self) -> IntArray:
        """Return the rows on the front of their group, ascending, as Front.current."""
        return np.sort(self._stored.rows[self._stored.starts < self.clock])

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(self._stored.rows)

    def step(
        self, arrivals: Arrivals, groups: IntArray, until: Micros, shards: int = 1, ask: AskGroups = groups_one_by_one
    ) -> Updates:
        """Take the arrivals of [clock, until), each of a group, asking so many shards; return the updates of that span."""
        stored = self._stored
        check_arrivals(arrivals, stored.points.shape[1], (stored.clock, until))
        present, codes = np.unique(np.concatenate([self._groups, groups]), return_inverse=True)
        known, new = codes[: len(self._groups)], codes[len(self._groups) :]
        owners = _owners(_pairs(known, new, len(present)), shards)
        questions = []
        for shard in range(shards):
            old, fresh = owners[known] == shard, owners[new] == shard
            questions.append(
                GroupQuestion(stored.at(old), self._groups[old], arrivals.at(fresh), groups[fresh], self.window, until)
            )
        answers = list(ask(questions))
        fresh_points = Stored(arrivals.points, arrivals.times, arrivals.rows, arrivals.times, until)
        self._keep(
            joined([stored._replace(clock=until), fresh_points]), np.concatenate([self._groups, groups]), answers
        )
        return Updates.merged([answer.updates for answer in answers])

    def _keep(self, points: Stored, groups: IntArray, answers: Sequence[GroupAnswer]) -> None:
        """Keep those of `points` that the answers name, with the starts that they say."""
        rows = np.concatenate([answer.rows for answer in answers])
        by_row = np.argsort(points.rows, kind="stable")
        at = by_row[np.searchsorted(points.rows, rows, sorter=by_row)]
        self._stored = points.at(at)._replace(starts=np.concatenate([answer.starts for answer in answers]))
        self._groups = groups[at]


def _pairs(known: IntArray, new: IntArray, groups: int) -> FloatArray:
    """Return the pairs to be compared in each group: arrivals with what is stored, and half of them with one another."""
    arriving = np.bincount(new, minlength=groups)
    pairs: FloatArray = arriving * (np.bincount(known, minlength=groups) + arriving / 2 + 1)
    return pairs


def _owners(loads: FloatArray, shards: int) -> IntArray:
    """Return the shard of each group, by loads; the many small ones after the first are dealt in turn."""
    order = np.argsort(-loads, kind="stable")
    owners = np.empty(len(loads), np.int64)
    owners[order] = np.arange(len(loads)) % shards
    heap = [(0.0, shard) for shard in range(shards)]
    for group in order[:_WEIGHED].tolist():
        load, shard = heap[0]
        owners[group] = shard
        heapq.heapreplace(heap, (load + float(loads[group]), shard))
    return owners
