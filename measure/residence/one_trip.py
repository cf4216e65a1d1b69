"""A front whose shards are elsewhere and keep their points: in each step one request goes to all of them.

A shard returns the start of each arrival as far as its own points determine it, the ends of the stays of the arrivals
that it stores, and the updates of its older points. The driver takes the maximum of the starts, which makes the updates
complete, and sends it with the next request, so that a step needs one trip instead of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from skypane.kernels.influence import START
from skypane.operators.fronts import FrontContents, NewPoints
from skypane.operators.fronts.front import MANY
from skypane.operators.fronts.front_operator import Updates
from skypane.operators.fronts.prefilter import StrongPoint, passing
from skypane.operators.fronts.resident_fronts import ResidentShard, owned_runs
from skypane.operators.fronts.shards import Runs
from skypane.types import IntArray, Micros


class Request(NamedTuple):
    """The input of all shards in one step.

    step      number of the step, from 0
    starts    the starts of the arrivals of the step before, on the whole front; None in the first step
    arrivals  new points in order of time
    owned     the runs of arrivals that each shard stores
    until     the clock after the step
    """

    step: int
    starts: IntArray | None
    arrivals: NewPoints
    owned: list[Runs]
    until: Micros


class Response(NamedTuple):
    """The output of one shard in one step.

    starts   start of each arrival, as far as the points here determine it
    own      the arrivals that the shard has taken, by their index, and the ends of their stays
    updates  updates of older points
    stored   number of points stored after the step
    """

    starts: IntArray
    own: IntArray
    ends: IntArray
    updates: Updates
    stored: int


Send: TypeAlias = Callable[[Request], list[Response]]
"""Sends a request to all shards, and returns their responses in order."""


class OneTripShard(ResidentShard):
    """A shard that learns the starts of its arrivals with the request of the next step."""

    _arrived: IntArray

    def answer(self, request: Request, shard: int) -> Response:
        """Take the arrivals of a step, as shard number `shard`."""
        if request.starts is not None:
            self._settle(request.starts)
        span, self._arrived = (self._clock, request.until), request.arrivals.rows
        found = self.starts_of(request.arrivals, request.owned[shard], request.until)
        parts = [*self._discarded, self._stays()]
        self._discarded = []
        own = np.concatenate([~rows[rows < 0] for rows, _, _ in parts])
        ends = np.concatenate([ends[rows < 0] for rows, _, ends in parts])
        older = [
            Updates.of_stays(rows[rows >= 0], starts[rows >= 0], ends[rows >= 0], span) for rows, starts, ends in parts
        ]
        return Response(found, own, ends, Updates.merged(older), len(self))

    def _settle(self, found: IntArray) -> None:
        """Set the starts of the arrivals of the last step that are stored here, and their row numbers."""
        rows, starts, _ = self._stays()
        at = np.flatnonzero(rows < 0)
        arrivals = ~rows[at]
        starts[at], rows[at] = found[arrivals], self._arrived[arrivals]

    def _stays(self) -> tuple[IntArray, IntArray, IntArray]:
        starts, ends = self._slots.clocks[START:, : self._size]
        return self._rows[: self._size], starts, ends


class OneTripFront:
    """The driver's part of a front whose shards keep their points."""

    def __init__(self, shards: list[FrontContents], window: Micros, send: Send) -> None:
        self._window, self._send, self._clock = window, send, shards[0].clock
        self._sizes = [len(shard.rows) for shard in shards]
        self._starts: IntArray | None = None
        self._strong: StrongPoint | None = None
        self._steps = 0

    def step(self, arrivals: NewPoints, until: Micros) -> Updates:
        """Do as FrontOperator.step()."""
        span, arrivals = (self._clock, until), self._filtered(arrivals.by_time())
        owned = owned_runs(len(arrivals.rows), self._sizes)
        found = self._send(Request(self._steps, self._starts, arrivals, owned, until))
        starts = np.maximum.reduce([response.starts for response in found])
        new = [Updates.of_stays(arrivals.rows[one.own], starts[one.own], one.ends, span) for one in found]
        self._sizes = [response.stored for response in found]
        self._starts, self._clock, self._steps = starts, until, self._steps + 1
        return Updates.merged([*new, *(response.updates for response in found)])

    def _filtered(self, arrivals: NewPoints) -> NewPoints:
        """Drop the arrivals that are never on the front, as the front in the driver does."""
        if len(arrivals.rows) < MANY:
            return arrivals
        unseen, self._strong = passing(arrivals.points, arrivals.times, self._strong, self._window)
        return arrivals.at(np.flatnonzero(~unseen))
