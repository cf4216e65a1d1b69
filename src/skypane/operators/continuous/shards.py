"""DB in shards: each answers for all arrivals of a step, and the answers are reduced by max and min (paper 4, section 4).

    SIT(p)   = max over shards of SIT by the points of the shard
    prune(p) = min over shards

A shard's answer needs its stored points and the arrivals, nothing else, so answers may come from threads or from tasks,
and the number of shards may change with each step. Arrivals are compared with one another in every shard, which costs
little where a step brings few points for each one stored. New points go to the shard with the fewest (LLW+: those that it
has just been given are counted too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from skypane.kernels.influence import END, START
from skypane.operators.continuous.front import BEGIN, Arrivals, Front, Stored, check_arrivals
from skypane.operators.continuous.updates import Updates, check_window
from skypane.types import IntArray, Micros


class Spans(NamedTuple):
    """From when until when points are on the front, as far as one shard can tell: those stored, then the arrivals."""

    starts: IntArray
    ends: IntArray


class SpanFront(Front):
    """A front whose points are numbered from 0, and which notes the span of each, whether it is ever on the front or not."""

    def __init__(self, d: int, window: Micros, points: int) -> None:
        super().__init__(d, window)
        self.spans = Spans(np.empty(points, np.int64), np.empty(points, np.int64))

    def go_on(self, stored: Stored) -> None:
        """Go on where the front that gave `stored` was."""
        self.clock = stored.clock
        self._store(stored)

    def _updates(self, at: Any, span: tuple[Micros, Micros]) -> Updates:
        rows = self._rows[: self._size][at]
        self.spans.starts[rows] = self._slots.clocks[START, : self._size][at]
        self.spans.ends[rows] = self._slots.clocks[END, : self._size][at]
        return super()._updates(at, span)


class Question(NamedTuple):
    """What one shard is asked: its points, in order of arrival, and the arrivals of [clock, until)."""

    stored: Stored
    arrivals: Arrivals
    window: Micros
    until: Micros


def answer(question: Question) -> Spans:
    """Return the spans that follow from the points of one shard and the arrivals."""
    stored, arrivals, window, until = question
    known, new = len(stored.rows), len(arrivals.rows)
    front = SpanFront(stored.points.shape[1], window, known + new)
    front.go_on(stored._replace(rows=np.arange(known)))
    front.step(arrivals._replace(rows=np.arange(known, known + new)), until)
    return front.spans


Ask: TypeAlias = Callable[[Callable[[Question], Spans], Sequence[Question]], Iterable[Spans]]
"""How shards are asked: map, or one that asks several at once."""


class ShardedFront:
    """A front as in front.py, its points in as many shards as each step says."""

    def __init__(self, d: int, window: Micros, ask: Ask = map) -> None:
        none = np.empty(0, np.int64)
        self.window = check_window(window)
        self.shards = [Stored(np.empty((0, d)), none, none, none, BEGIN)]
        self._ask = ask

    @property
    def clock(self) -> Micros:
        """Updates before are told."""
        return self.shards[0].clock

    def __len__(self) -> int:
        """Count the points stored, in all shards."""
        return sum(len(shard.rows) for shard in self.shards)

    def step(self, arrivals: Arrivals, until: Micros, shards: int | None = None) -> Updates:
        """Take the arrivals of [clock, until), in that many shards from now on; return the updates of that span."""
        clock = self.clock
        check_arrivals(arrivals, self.shards[0].points.shape[1], (clock, until))
        if shards is not None and shards != len(self.shards):
            self.shards = _divided(self.shards, shards)
        arrivals = arrivals.at(np.argsort(arrivals.times, kind="stable"))
        questions = [Question(shard, arrivals, self.window, until) for shard in self.shards]
        spans = list(self._ask(answer, questions))
        new = Spans(
            np.max([span.starts[len(shard.rows) :] for shard, span in zip(self.shards, spans, strict=True)], axis=0),
            np.min([span.ends[len(shard.rows) :] for shard, span in zip(self.shards, spans, strict=True)], axis=0),
        )
        told = [Updates.of_stays(arrivals.rows, *new, (clock, until))]
        kept = []
        for shard, span in zip(self.shards, spans, strict=True):
            known = len(shard.rows)
            ends = span.ends[:known]
            told.append(Updates.of_stays(shard.rows, shard.starts, ends, (clock, until)))
            kept.append(_at(shard, ends >= until, until))
        fresh = Stored(arrivals.points, arrivals.times, arrivals.rows, new.starts, until)
        self.shards = _given(kept, _at(fresh, new.ends >= until, until))
        return Updates.merged(told)


def _at(stored: Stored, which: Any, clock: Micros) -> Stored:
    points, times, rows, starts, _ = stored
    return Stored(points[which], times[which], rows[which], starts[which], clock)


def _joined(parts: Sequence[Stored]) -> Stored:
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:4]]
    return Stored(columns[0], columns[1], columns[2], columns[3], parts[0].clock)


def _divided(shards: Sequence[Stored], n: int) -> list[Stored]:
    """Deal the points of all shards, in order of arrival, to n shards in turn."""
    whole = _joined(shards)
    order = np.argsort(whole.times, kind="stable")
    return [_at(whole, order[first::n], whole.clock) for first in range(n)]


def _given(shards: list[Stored], new: Stored) -> list[Stored]:
    """Give new points, younger than all, to the shards with the fewest, one after the other."""
    loads = np.array([len(shard.rows) for shard in shards])
    owners = _least_loaded(loads, len(new.rows))
    return [_joined([shard, _at(new, owners == index, new.clock)]) for index, shard in enumerate(shards)]


def _least_loaded(loads: IntArray, n: int) -> IntArray:
    """Return the owner of each of n points, each the least loaded when its turn comes; of equals the first."""
    levels = np.arange(n)[:, None] + loads  # the k-th point of a worker comes when its load is loads + k
    order = np.lexsort((np.broadcast_to(np.arange(len(loads)), levels.shape).ravel(), levels.ravel()))[:n]
    owners: IntArray = order % len(loads)
    return owners
