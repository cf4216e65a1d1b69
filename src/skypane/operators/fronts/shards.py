"""The work of one shard of a front; it depends on its request alone, so that a thread or a task can do it.

A shard has a part of the points, and all arrivals of the step, of which it stores some and compares the others, which
are stored in other shards (SpanFront). A shard of groups has all points of its groups, stored and new: its updates are
those of its groups. sharded_fronts.py divides the points into shards and combines the responses. The shards of
resident_fronts.py stay in the process and compare in the same way (PartFront).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from skypane.kernels.influence import END, START, visit
from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import FrontContents, NewPoints, Updates
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.types import IntArray, Micros

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of arrivals, half-open, ascending."""


class Spans(NamedTuple):
    """The spans in which points are on the front, as far as one shard knows: stored points, then arrivals."""

    starts: IntArray
    ends: IntArray

    def at(self, rows: slice) -> Spans:
        return Spans(self.starts[rows], self.ends[rows])


class PartFront(Front):
    """A front with a part of the points: it takes all arrivals of a step, stores some, and compares the others."""

    def compare(self, arrivals: NewPoints, owned: Runs, until: Micros) -> None:
        """Compare arrivals, in order of time, with all points; store those of the runs `owned`; move the clock."""
        span = (self._clock, until)
        begin = 0
        for first, last in owned:
            self._visit(arrivals.at(slice(begin, first)), span)
            self._insert(arrivals.at(slice(first, last)), span)
            begin = last
        self._visit(arrivals.at(slice(begin, None)), span)
        self._clock = until

    @abstractmethod
    def _note(self, rows: IntArray, starts: IntArray) -> None:
        """Note the starts of arrivals that visited, (n,), as far as the points here determine them."""

    def _visit(self, visitors: NewPoints, span: tuple[Micros, Micros]) -> None:
        """Compare points with the stored ones, without storing them."""
        begin, n = 0, len(visitors.rows)
        while begin < n:
            at = self._size
            end = min(n, begin + len(self._rows) - at)
            if end <= begin:
                self._make_room(span)
                continue
            some = visitors.at(slice(begin, end))
            self._write(at, some)
            visit(self._slots, self._index, at, at + end - begin, self.window)
            self._note(some.rows, self._slots.clocks[START, at : at + end - begin])
            begin = end


class SpanFront(PartFront):
    """A front whose points are numbered from 0; it records the span of each, even of points never on the front."""

    def __init__(self, d: int, window: Micros, points: int) -> None:
        super().__init__(d, window)
        self.spans = Spans(np.empty(points, np.int64), np.empty(points, np.int64))

    def compare(self, arrivals: NewPoints, owned: Runs, until: Micros) -> None:
        span = (self._clock, until)
        self.spans.ends[arrivals.rows] = arrivals.times + self.window  # visitors are pruned elsewhere
        super().compare(arrivals, owned, until)
        self._updates(slice(None), span)

    def _note(self, rows: IntArray, starts: IntArray) -> None:
        self.spans.starts[rows] = starts

    def _filtered(self, arrivals: NewPoints) -> NewPoints:
        return arrivals  # each needs a span

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        rows = self._rows[: self._size][at]
        self.spans.starts[rows] = self._slots.clocks[START, : self._size][at]
        self.spans.ends[rows] = self._slots.clocks[END, : self._size][at]
        return super()._updates(at, span)


class ShardRequest(NamedTuple):
    """The input of one shard: its points, the arrivals of [clock, until) by time, and the runs `owned`, which it stores."""

    stored: FrontContents
    arrivals: NewPoints
    owned: Runs
    window: Micros
    until: Micros


def compare_in_shard(request: ShardRequest) -> Spans:
    """Return the spans that follow from the points of one shard."""
    stored, arrivals, owned, window, until = request
    known, new = len(stored.rows), len(arrivals.rows)
    front = SpanFront(stored.points.shape[1], window, known + new)
    front.load(stored._replace(rows=np.arange(known)))
    front.compare(arrivals._replace(rows=np.arange(known, known + new)), owned, until)
    return front.spans


RunShards: TypeAlias = Callable[[Sequence[ShardRequest]], Iterable[Spans]]
"""Runs shards, for example several at once; returns their spans in order."""


class GroupShardRequest(NamedTuple):
    """The input of one shard of groups: the points of its groups, and their arrivals of [clock, until)."""

    stored: FrontContents
    arrivals: NewPoints
    window: Micros
    until: Micros


class GroupShardResponse(NamedTuple):
    """The output of one shard of groups: its updates; the row number and the start of each point that it stores."""

    updates: Updates
    rows: IntArray
    starts: IntArray


def step_in_shard(request: GroupShardRequest) -> GroupShardResponse:
    """Return the response of one shard of groups."""
    stored, arrivals, window, until = request
    fronts = GroupedFronts.restore(stored, window)
    updates = fronts.step(arrivals, until)
    left = fronts.snapshot()
    return GroupShardResponse(updates, left.rows, left.starts)


RunGroupShards: TypeAlias = Callable[[Sequence[GroupShardRequest]], Iterable[GroupShardResponse]]
"""Runs shards of groups; returns their responses in order."""


ParallelMap: TypeAlias = Callable[..., Iterable[Any]]
"""Calls a function as map() does, possibly several calls at once, for example in threads."""


class ShardPlan(NamedTuple):
    """The number of shards, and the functions that run them, by default one after the other in this process.

    With 0 shards a front is whole. With `in_place` the shards keep their points and indexes from step to step in this
    process, and that function runs them; without it they have no state, and get their points with each request.
    """

    shards: int = 0
    run_shards: RunShards = partial(map, compare_in_shard)
    run_group_shards: RunGroupShards = partial(map, step_in_shard)
    in_place: ParallelMap | None = None


UNSHARDED: Final = ShardPlan()
