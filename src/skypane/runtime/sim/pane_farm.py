"""The pane-level farm as an object that advances interval by interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.control.monitoring import SamplingPeriod
from skypane.control.splitting import PaneRoundRobin, Splitting, SplittingSample, TupleRoundRobin
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.runtime.sim import farm_arrays, pane_events
from skypane.runtime.sim.partition import members
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import ConfigError, FloatArray, IntArray


class PartitionResults(NamedTuple):
    """r partition results by column: seconds, pane, worker, tuples, partition counter (0: closed by force); each (r,).

    rows   the tuple numbers of each result, if the stream has points
    """

    time: FloatArray
    pane: IntArray
    worker: IntArray
    tuples: IntArray
    counter: IntArray
    rows: tuple[IntArray, ...] | None = None


class FarmInterval(NamedTuple):
    """The outcome of an interval: the sample for the splitting policy, the sampling period, the partition results."""

    sample: SplittingSample
    period: SamplingPeriod
    results: PartitionResults


class PaneFarm:
    """A PLQ of up to `most` workers.

    cost   (K,) seconds of a tuple in a partition with k tuples before it; with points, with k rows in its result
    room   capacity of a worker's queue in tuples, including the one being processed; None: unbounded. The source waits
           while the queue for the next tuple is full
    """

    def __init__(
        self, stream: SimulatedStream, cost: FloatArray, workers: int, most: int | None = None, room: int | None = None
    ) -> None:
        most = most or workers
        if not 1 <= workers <= most:
            raise ConfigError(f"need 1 <= workers <= {most}, got {workers}")
        if not len(cost) or not (cost >= 0).all():
            raise ConfigError("cost must have at least one value, and all values must be >= 0 seconds")
        if room is not None and room < 1:
            raise ConfigError(f"room must be at least one tuple, got {room}")
        self._arrays = farm_arrays.made(stream, cost, most)
        self._exact = stream.points is not None
        self._room = 2**62 if room is None else room
        self.workers = workers
        self.now = 0.0
        self._taken = self._closed = 0

    def advance(self, until: float, policy: Splitting, state: object = None) -> FarmInterval:
        """Advance to the time `until`; return the measurements and the partition results of the interval."""
        if until <= self.now:
            raise ConfigError(f"until must be later than the current time, {self.now}, got {until}")
        routing, theta = _routing(policy, state)
        self._advance(until, routing, theta)
        period, sizes = self._measured(until - self.now)
        self.now = until
        return FarmInterval(SplittingSample(period, sizes), period, self._results())

    def finish(self, policy: Splitting, state: object = None) -> PartitionResults:
        """Process the rest of the stream, close all panes, and process the backlog; return the partition results."""
        routing, theta = _routing(policy, state)
        if not self.ended:
            self._advance(np.inf, routing, theta)
        self.now = max(self.now, float(self._arrays.clock[0]))
        self._advance(self.now, routing, theta)
        while self._arrays.counts[pane_events.CLOSED] < len(self._arrays.closing):
            pane_events.close_next(self._arrays, self.now, self.workers)
        while self._arrays.heap.use[0]:
            self.now = max(self.now, float(self._arrays.heap.time[: self._arrays.heap.use[0]].max()))
            self._advance(self.now, routing, theta)
        return self._results()

    def _advance(self, until: float, routing: int, theta: float) -> None:
        pane_events.advance(self._arrays, until, routing, theta, self.workers, self._room)

    def scale(self, workers: int) -> None:
        """Change the number of workers."""
        if not 1 <= workers <= len(self._arrays.first):
            raise ConfigError(f"need 1 <= workers <= {len(self._arrays.first)}, got {workers}")
        if workers < self.workers:
            open_panes = len(self._arrays.closing) - int(self._arrays.counts[pane_events.CLOSED])
            if farm_arrays.room(self._arrays) < (open_panes + 1) * len(self._arrays.first) + len(self._arrays.closing):
                self._arrays = farm_arrays.roomier(self._arrays)
            pane_events.turn_off(self._arrays, self.now, self.workers, workers)
        self.workers = workers

    @property
    def backlog(self) -> int:
        """Tuples in the queues, and arrived tuples that wait for room in a queue."""
        farm = self._arrays
        come = int(np.searchsorted(farm.arrival, self.now, side="right"))
        return int(farm.load.sum()) + max(0, come - int(farm.counts[pane_events.ARRIVED]))

    @property
    def open_partitions(self) -> IntArray:
        """Tuples processed in each partition whose result has not been sent."""
        taken = self._arrays.taken
        return taken[taken > 0]

    @property
    def computed(self) -> FloatArray:
        """The time at which the latest tuple of each pane was processed; 0 if none was."""
        return self._arrays.computed.copy()

    @property
    def dropped(self) -> int:
        return int(self._arrays.counts[pane_events.DROPPED])

    @property
    def ended(self) -> bool:
        """Whether all tuples have arrived."""
        return bool(self._arrays.counts[pane_events.ARRIVED] == len(self._arrays.arrival))

    def _measured(self, seconds: float) -> tuple[SamplingPeriod, tuple[int, ...]]:
        farm, active = self._arrays, slice(0, self.workers)
        closed = slice(self._closed, int(farm.counts[pane_events.CLOSED]))
        sizes = farm.to[closed][farm.holds[closed]]
        self._closed = closed.stop
        period = SamplingPeriod(
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

    def _results(self) -> PartitionResults:
        farm, new = self._arrays, slice(self._taken, int(self._arrays.counts[pane_events.RESULTS]))
        self._taken = new.stop
        return PartitionResults(
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


def _routing(policy: Splitting, state: object) -> tuple[int, float]:
    """Return the code of a policy in pane_events.py, and its threshold."""
    if isinstance(policy, ThresholdSplitting):
        return pane_events.THRESHOLD, policy.theta(policy.init() if state is None else state)
    if isinstance(policy, PaneRoundRobin):
        return pane_events.PB_RR, np.inf
    if isinstance(policy, TupleRoundRobin):
        return pane_events.TB_RR, np.inf
    raise ConfigError(f"splitting policy {policy.name} is not supported by the simulator")
