"""The pane-level farm as an object that advances by intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.control.monitoring import Period
from skypane.control.splitting import PaneRoundRobin, Sample, Splitting, TupleRoundRobin
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.runtime.sim import farm_arrays, pane_farm
from skypane.runtime.sim.partition import members
from skypane.runtime.sim.stream import Stream
from skypane.types import ConfigError, FloatArray, IntArray


class Results(NamedTuple):
    """Partition results: seconds, pane, worker, tuples, partition counter (0: closed by force); each (r,).

    rows   where the stream has points, the tuples of each result by their number
    """

    time: FloatArray
    pane: IntArray
    worker: IntArray
    tuples: IntArray
    counter: IntArray
    rows: tuple[IntArray, ...] | None = None


class Interval(NamedTuple):
    """What an interval showed: what the splitting law is told, the period in it, and the results that came out."""

    sample: Sample
    period: Period
    results: Results


class PaneFarm:
    """A PLQ of up to `most` workers.

    cost   (K,) seconds of a tuple in a partition that has taken k before it; of a stream with points, whose result has k rows
    room   tuples that a worker's queue has room for, with the one that is served; None: any number. The source waits
           while there is none where the next tuple goes
    """

    def __init__(
        self, stream: Stream, cost: FloatArray, workers: int, most: int | None = None, room: int | None = None
    ) -> None:
        most = most or workers
        if not 1 <= workers <= most:
            raise ConfigError(f"need 1 <= workers <= {most}, got {workers}")
        if not len(cost) or not (cost >= 0).all():
            raise ConfigError("a tuple's cost must be known, and not negative")
        if room is not None and room < 1:
            raise ConfigError(f"a queue needs room for at least one tuple, got {room}")
        self._arrays = farm_arrays.made(stream, cost, most)
        self._exact = stream.points is not None
        self._room = 2**62 if room is None else room
        self.workers = workers
        self.now = 0.0
        self._taken = self._closed = 0

    def advance(self, until: float, law: Splitting, state: object = None) -> Interval:
        """Go on to a time; return what was measured since the last one, and the results that came out."""
        if until <= self.now:
            raise ConfigError(f"time goes on: from {self.now} to {until} is no interval")
        policy, theta = _routing(law, state)
        self._advance(until, policy, theta)
        period, sizes = self._measured(until - self.now)
        self.now = until
        return Interval(Sample(period, sizes), period, self._results())

    def finish(self, law: Splitting, state: object = None) -> Results:
        """Take what is left of the stream, close all panes, and work off what waits."""
        policy, theta = _routing(law, state)
        if not self.ended:
            self._advance(np.inf, policy, theta)
        self.now = max(self.now, float(self._arrays.clock[0]))
        self._advance(self.now, policy, theta)
        while self._arrays.counts[pane_farm.CLOSED] < len(self._arrays.closing):
            pane_farm.close_next(self._arrays, self.now, self.workers)
        while self._arrays.heap.use[0]:
            self.now = max(self.now, float(self._arrays.heap.time[: self._arrays.heap.use[0]].max()))
            self._advance(self.now, policy, theta)
        return self._results()

    def _advance(self, until: float, policy: int, theta: float) -> None:
        pane_farm.advance(self._arrays, until, policy, theta, self.workers, self._room)

    def scale(self, workers: int) -> None:
        """Go on with so many workers."""
        if not 1 <= workers <= len(self._arrays.first):
            raise ConfigError(f"need 1 <= workers <= {len(self._arrays.first)}, got {workers}")
        if workers < self.workers:
            open_panes = len(self._arrays.closing) - int(self._arrays.counts[pane_farm.CLOSED])
            if farm_arrays.room(self._arrays) < (open_panes + 1) * len(self._arrays.first) + len(self._arrays.closing):
                self._arrays = farm_arrays.roomier(self._arrays)
            pane_farm.turn_off(self._arrays, self.now, self.workers, workers)
        self.workers = workers

    @property
    def backlog(self) -> int:
        """Tuples in the queues, and those that have come and wait for room in one."""
        farm = self._arrays
        come = int(np.searchsorted(farm.arrival, self.now, side="right"))
        return int(farm.load.sum()) + max(0, come - int(farm.counts[pane_farm.ARRIVED]))

    @property
    def open_partitions(self) -> IntArray:
        """Tuples processed of each partition whose result has not gone out."""
        taken = self._arrays.taken
        return taken[taken > 0]

    @property
    def computed(self) -> FloatArray:
        """By pane, when its last tuple so far was processed; 0 if none was."""
        return self._arrays.computed.copy()

    @property
    def dropped(self) -> int:
        return int(self._arrays.counts[pane_farm.DROPPED])

    @property
    def ended(self) -> bool:
        """Whether all tuples have come."""
        return bool(self._arrays.counts[pane_farm.ARRIVED] == len(self._arrays.arrival))

    def _measured(self, seconds: float) -> tuple[Period, tuple[int, ...]]:
        farm, active = self._arrays, slice(0, self.workers)
        closed = slice(self._closed, int(farm.counts[pane_farm.CLOSED]))
        sizes = farm.to[closed][farm.holds[closed]]
        self._closed = closed.stop
        period = Period(
            seconds=seconds,
            busy=tuple(farm.busy[active].tolist()),
            processed=tuple(farm.done[active].tolist()),
            scheduled=tuple(farm.sent[active].tolist()),
            panes=closed.stop - closed.start,
            partitions=int(farm.parts[closed].sum()),
        )
        for column in (farm.busy, farm.done, farm.sent):
            column[:] = 0
        return period, tuple(sizes.tolist())

    def _results(self) -> Results:
        farm, new = self._arrays, slice(self._taken, int(self._arrays.counts[pane_farm.RESULTS]))
        self._taken = new.stop
        return Results(
            farm.result_time[new].copy(),
            farm.result_pane[new].copy(),
            farm.result_worker[new].copy(),
            farm.result_tuples[new].copy(),
            farm.result_counter[new].copy(),
            self._rows(new) if self._exact else None,
        )

    def _rows(self, new: slice) -> tuple[IntArray, ...]:
        farm = self._arrays
        found = zip(farm.result_head[new].tolist(), farm.result_rows[new].tolist(), strict=True)
        return tuple(members(farm.behind, first, count) for first, count in found)


def _routing(law: Splitting, state: object) -> tuple[int, float]:
    if isinstance(law, ThresholdSplitting):
        return pane_farm.THRESHOLD, law.theta(law.init() if state is None else state)
    if isinstance(law, PaneRoundRobin):
        return pane_farm.PB_RR, np.inf
    if isinstance(law, TupleRoundRobin):
        return pane_farm.TB_RR, np.inf
    raise ConfigError(f"the simulator has no compiled form of {law.name}")
