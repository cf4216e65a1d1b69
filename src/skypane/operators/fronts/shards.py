"""DB in shards: each processes all arrivals of a step, and results are reduced by max and min (paper 4, section 4).

    SIT(p)   = max over shards of SIT by the points of the shard
    prune(p) = min over shards

During a step, each arrival is stored in one shard and visits the others, where it is compared with the stored points in
order of time. Each pair of points is thus compared in one shard. A response depends on its request alone, so a thread
or a task can compute it, and the number of shards may change with each step. New points that remain after a step go to
the shard with the fewest points (LLW+: points that it has just received are counted too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.kernels.influence import END, START, visit
from skypane.operators.fronts.front import BEGIN, Front, FrontContents, NewPoints, check_arrivals, joined
from skypane.operators.fronts.updates import Updates, check_window
from skypane.types import IntArray, Micros

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of arrivals, half-open, ascending."""


class Spans(NamedTuple):
    """The spans in which points are on the front, as far as one shard knows: stored points, then arrivals."""

    starts: IntArray
    ends: IntArray

    def at(self, rows: slice) -> Spans:
        return Spans(self.starts[rows], self.ends[rows])


class SpanFront(Front):
    """A front whose points are numbered from 0; it records the span of each, even of points never on the front."""

    def __init__(self, d: int, window: Micros, points: int) -> None:
        super().__init__(d, window)
        self.spans = Spans(np.empty(points, np.int64), np.empty(points, np.int64))

    def go_on(self, stored: FrontContents) -> None:
        """Continue from a snapshot()."""
        self.clock = stored.clock
        self._store(stored)

    def meet(self, arrivals: NewPoints, hosted: Runs, until: Micros) -> None:
        """Take arrivals in order of time, store those of the runs `hosted`, and move the clock."""
        span = (self.clock, until)
        begin = 0
        for first, last in hosted:
            self._visited(arrivals.at(slice(begin, first)), span)
            self._take(arrivals.at(slice(first, last)), span)
            begin = last
        self._visited(arrivals.at(slice(begin, None)), span)
        self.clock = until
        self._updates(slice(None), span)

    def _visited(self, visitors: NewPoints, span: tuple[Micros, Micros]) -> None:
        begin, n = 0, len(visitors.rows)
        self.spans.ends[visitors.rows] = visitors.times + self.window
        while begin < n:
            at = self._size
            end = min(n, begin + len(self._rows) - at)
            if end <= begin:
                self._make_room(span)
                continue
            some = visitors.at(slice(begin, end))
            self._write(at, some)
            visit(self._slots, self._index, at, at + end - begin, self.window)
            self.spans.starts[some.rows] = self._slots.clocks[START, at : at + end - begin]
            begin = end

    def _seen(self, arrivals: NewPoints) -> NewPoints:
        return arrivals  # each needs a span

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        rows = self._rows[: self._size][at]
        self.spans.starts[rows] = self._slots.clocks[START, : self._size][at]
        self.spans.ends[rows] = self._slots.clocks[END, : self._size][at]
        return super()._updates(at, span)


class ShardRequest(NamedTuple):
    """The input of one shard: its points, the arrivals of [clock, until) by time, and the runs `hosted` to store."""

    stored: FrontContents
    arrivals: NewPoints
    hosted: Runs
    window: Micros
    until: Micros


def answer(request: ShardRequest) -> Spans:
    """Return the spans that follow from the points of one shard."""
    stored, arrivals, hosted, window, until = request
    known, new = len(stored.rows), len(arrivals.rows)
    front = SpanFront(stored.points.shape[1], window, known + new)
    front.go_on(stored._replace(rows=np.arange(known)))
    front.meet(arrivals._replace(rows=np.arange(known, known + new)), hosted, until)
    return front.spans


Ask: TypeAlias = Callable[[Sequence[ShardRequest]], Iterable[Spans]]
"""Runs shards, for example several at once; returns their spans in order."""


def one_by_one(requests: Sequence[ShardRequest]) -> Iterable[Spans]:
    """Run the shards in this process, one after the other."""
    return map(answer, requests)


class ShardedFront:
    """A front as in front.py, with its points in as many shards as each step requests."""

    def __init__(self, d: int, window: Micros) -> None:
        none = np.empty(0, np.int64)
        self.window = check_window(window)
        self.shards = [FrontContents(np.empty((0, d)), none, none, none, BEGIN)]

    @classmethod
    def of(cls, front: Front) -> Self:
        """Return a sharded front that continues from `front`, with its points in one shard for now."""
        stored = front.snapshot()
        sharded = cls(stored.points.shape[1], front.window)
        sharded.shards = [stored]
        return sharded

    def whole(self) -> Front:
        """Return a front that continues from this one."""
        return Front.restore(self.snapshot(), self.window)

    def snapshot(self) -> FrontContents:
        """Return the state to remember, as Front.snapshot."""
        return _by_arrival(self.shards)

    @property
    def clock(self) -> Micros:
        """The time before which all updates have been returned."""
        return self.shards[0].clock

    def __len__(self) -> int:
        """Return the number of points stored in all shards."""
        return sum(len(shard.rows) for shard in self.shards)

    def current(self) -> IntArray:
        """Return the rows on the front, ascending, as Front.current."""
        return np.sort(np.concatenate([shard.rows[shard.starts < self.clock] for shard in self.shards]))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(np.concatenate([shard.rows for shard in self.shards]))

    def step(self, arrivals: NewPoints, until: Micros, shards: int | None = None, ask: Ask = one_by_one) -> Updates:
        """Take the arrivals of [clock, until), in `shards` shards from now on; return the updates of that span."""
        clock = self.clock
        check_arrivals(arrivals, self.shards[0].points.shape[1], (clock, until))
        if shards is not None and shards != len(self.shards):
            self.shards = _divided(self.shards, shards)
        arrivals = arrivals.at(np.argsort(arrivals.times, kind="stable"))
        requests = [
            ShardRequest(shard, arrivals, runs, self.window, until)
            for shard, runs in zip(self.shards, _runs(len(arrivals.rows), len(self.shards)), strict=True)
        ]
        spans = list(ask(requests))
        arrived = [span.at(slice(len(shard.rows), None)) for shard, span in zip(self.shards, spans, strict=True)]
        new = Spans(
            np.stack([span.starts for span in arrived]).max(axis=0),
            np.stack([span.ends for span in arrived]).min(axis=0),
        )
        updates = [Updates.of_stays(arrivals.rows, *new, (clock, until))]
        kept = []
        for shard, span in zip(self.shards, spans, strict=True):
            ends = span.ends[: len(shard.rows)]
            updates.append(Updates.of_stays(shard.rows, shard.starts, ends, (clock, until)))
            kept.append(shard.at(ends >= until)._replace(clock=until))
        fresh = FrontContents(arrivals.points, arrivals.times, arrivals.rows, new.starts, until)
        self.shards = _given(kept, fresh.at(new.ends >= until))
        return Updates.merged(updates)


def _divided(shards: Sequence[FrontContents], n: int) -> list[FrontContents]:
    """Deal the points of all shards, in order of arrival, to n shards in turn."""
    whole = _by_arrival(shards)
    return [whole.at(slice(first, None, n)) for first in range(n)]


def _by_arrival(shards: Sequence[FrontContents]) -> FrontContents:
    whole = joined(shards)
    return whole.at(np.argsort(whole.times, kind="stable"))


def _given(shards: list[FrontContents], new: FrontContents) -> list[FrontContents]:
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
