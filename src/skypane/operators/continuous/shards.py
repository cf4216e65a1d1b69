"""DB in shards: each answers for all arrivals of a step, and the answers are reduced by max and min (paper 4, section 4).

    SIT(p)   = max over shards of SIT by the points of the shard
    prune(p) = min over shards

Each arrival is stored in one shard while the step lasts, and visits the others: there it is compared with what is stored, in
order of time. So each pair of points is compared in one shard. An answer needs the question alone: it may come from
a thread or a task, and the number of shards may change with each step. New points that are left after a step go to the shard
with the fewest (LLW+: those that it has just been given are counted too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from skypane.kernels.influence import END, START, visit
from skypane.operators.continuous.front import BEGIN, Arrivals, Front, Stored, check_arrivals, joined
from skypane.operators.continuous.updates import Updates, check_window
from skypane.types import IntArray, Micros

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of arrivals, half-open, ascending."""


class Spans(NamedTuple):
    """From when until when points are on the front, as far as one shard can tell: those stored, then the arrivals."""

    starts: IntArray
    ends: IntArray

    def at(self, rows: slice) -> Spans:
        return Spans(self.starts[rows], self.ends[rows])


class SpanFront(Front):
    """A front whose points are numbered from 0, and which notes the span of each, whether it is ever on the front or not."""

    def __init__(self, d: int, window: Micros, points: int) -> None:
        super().__init__(d, window)
        self.spans = Spans(np.empty(points, np.int64), np.empty(points, np.int64))

    def go_on(self, stored: Stored) -> None:
        """Go on where the front that gave `stored` was."""
        self.clock = stored.clock
        self._store(stored)

    def meet(self, arrivals: Arrivals, hosted: Runs, until: Micros) -> None:
        """Take arrivals in order of time, of which those of the runs `hosted` are stored, and move the clock."""
        span = (self.clock, until)
        begin = 0
        for first, last in hosted:
            self._visited(arrivals.at(slice(begin, first)), span)
            self._take(arrivals.at(slice(first, last)), span)
            begin = last
        self._visited(arrivals.at(slice(begin, None)), span)
        self.clock = until
        self._updates(slice(None), span)

    def _visited(self, visitors: Arrivals, span: tuple[Micros, Micros]) -> None:
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

    def _seen(self, arrivals: Arrivals) -> Arrivals:
        return arrivals  # each has a span

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        rows = self._rows[: self._size][at]
        self.spans.starts[rows] = self._slots.clocks[START, : self._size][at]
        self.spans.ends[rows] = self._slots.clocks[END, : self._size][at]
        return super()._updates(at, span)


class Question(NamedTuple):
    """What one shard is asked: its points, and the arrivals of [clock, until), in order of time; it stores the runs `hosted`."""

    stored: Stored
    arrivals: Arrivals
    hosted: Runs
    window: Micros
    until: Micros


def answer(question: Question) -> Spans:
    """Return the spans that follow from the points of one shard."""
    stored, arrivals, hosted, window, until = question
    known, new = len(stored.rows), len(arrivals.rows)
    front = SpanFront(stored.points.shape[1], window, known + new)
    front.go_on(stored._replace(rows=np.arange(known)))
    front.meet(arrivals._replace(rows=np.arange(known, known + new)), hosted, until)
    return front.spans


Ask: TypeAlias = Callable[[Sequence[Question]], Iterable[Spans]]
"""How shards are asked, such as several at once; answers come in order."""


def one_by_one(questions: Sequence[Question]) -> Iterable[Spans]:
    """Ask here and now."""
    return map(answer, questions)


class ShardedFront:
    """A front as in front.py, its points in as many shards as each step says."""

    def __init__(self, d: int, window: Micros) -> None:
        none = np.empty(0, np.int64)
        self.window = check_window(window)
        self.shards = [Stored(np.empty((0, d)), none, none, none, BEGIN)]

    @classmethod
    def of(cls, front: Front) -> Self:
        """Return what goes on where a front is, its points in one shard for now."""
        stored = front.snapshot()
        sharded = cls(stored.points.shape[1], front.window)
        sharded.shards = [stored]
        return sharded

    def whole(self) -> Front:
        """Return a front that goes on where this one is."""
        return Front.restore(self.snapshot(), self.window)

    def snapshot(self) -> Stored:
        """Return what must be remembered, as Front.snapshot."""
        return _by_arrival(self.shards)

    @property
    def clock(self) -> Micros:
        """Updates before are told."""
        return self.shards[0].clock

    def __len__(self) -> int:
        """Count the points stored, in all shards."""
        return sum(len(shard.rows) for shard in self.shards)

    def current(self) -> IntArray:
        """Return the rows on the front, ascending, as Front.current."""
        return np.sort(np.concatenate([shard.rows[shard.starts < self.clock] for shard in self.shards]))

    def kept(self) -> IntArray:
        """Return the rows stored, ascending, as Front.kept."""
        return np.sort(np.concatenate([shard.rows for shard in self.shards]))

    def step(self, arrivals: Arrivals, until: Micros, shards: int | None = None, ask: Ask = one_by_one) -> Updates:
        """Take the arrivals of [clock, until), in that many shards from now on; return the updates of that span."""
        clock = self.clock
        check_arrivals(arrivals, self.shards[0].points.shape[1], (clock, until))
        if shards is not None and shards != len(self.shards):
            self.shards = _divided(self.shards, shards)
        arrivals = arrivals.at(np.argsort(arrivals.times, kind="stable"))
        questions = [
            Question(shard, arrivals, runs, self.window, until)
            for shard, runs in zip(self.shards, _runs(len(arrivals.rows), len(self.shards)), strict=True)
        ]
        spans = list(ask(questions))
        arrived = [span.at(slice(len(shard.rows), None)) for shard, span in zip(self.shards, spans, strict=True)]
        new = Spans(
            np.stack([span.starts for span in arrived]).max(axis=0),
            np.stack([span.ends for span in arrived]).min(axis=0),
        )
        told = [Updates.of_stays(arrivals.rows, *new, (clock, until))]
        kept = []
        for shard, span in zip(self.shards, spans, strict=True):
            ends = span.ends[: len(shard.rows)]
            told.append(Updates.of_stays(shard.rows, shard.starts, ends, (clock, until)))
            kept.append(shard.at(ends >= until)._replace(clock=until))
        fresh = Stored(arrivals.points, arrivals.times, arrivals.rows, new.starts, until)
        self.shards = _given(kept, fresh.at(new.ends >= until))
        return Updates.merged(told)


def _divided(shards: Sequence[Stored], n: int) -> list[Stored]:
    """Deal the points of all shards, in order of arrival, to n shards in turn."""
    whole = _by_arrival(shards)
    return [whole.at(slice(first, None, n)) for first in range(n)]


def _by_arrival(shards: Sequence[Stored]) -> Stored:
    whole = joined(shards)
    return whole.at(np.argsort(whole.times, kind="stable"))


def _given(shards: list[Stored], new: Stored) -> list[Stored]:
    """Give new points, younger than all, to the shards with the fewest, one after the other."""
    owners = _least_loaded(np.array([len(shard.rows) for shard in shards]), len(new.rows))
    return [joined([shard, new.at(owners == index)]) for index, shard in enumerate(shards)]


def _runs(n: int, shards: int) -> list[Runs]:
    """Return the runs of n arrivals that each shard stores: of three, the first and the last, the second and the fifth, ...

    What is stored early is visited by more arrivals than what is stored late: an early run and a late one make up for that.
    """
    bounds = [n * part // (2 * shards) for part in range(2 * shards + 1)]
    runs = list(pairwise(bounds))
    return [(runs[shard], runs[-1 - shard]) for shard in range(shards)]


def _least_loaded(loads: IntArray, n: int) -> IntArray:
    """Return the owner of each of n points, each the least loaded when its turn comes; of equals the first."""
    levels = np.arange(n)[:, None] + loads  # the k-th point of a worker comes when its load is loads + k
    order = np.lexsort((np.broadcast_to(np.arange(len(loads)), levels.shape).ravel(), levels.ravel()))[:n]
    owners: IntArray = order % len(loads)
    return owners
