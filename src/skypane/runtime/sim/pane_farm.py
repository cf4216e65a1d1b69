"""The pane-level farm as an object that advances interval by interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.control.monitoring import SamplingPeriod
from skypane.control.splitting import PaneRoundRobin, Splitting, SplittingSample, TupleRoundRobin
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.runtime.sim import pane_events
from skypane.runtime.sim.farm_state import ARRIVED, CLOSED, DROPPED, RESULTS, initial_state
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
        self._state = initial_state(stream, cost, most)
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
        self.now = max(self.now, float(self._state.clock[0]))
        self._advance(self.now, routing, theta)
        while self._state.counts[CLOSED] < len(self._state.panes.closing):
            pane_events.close_next(self._state, self.now, self.workers)
        while self._state.heap.use[0]:
            self.now = max(self.now, float(self._state.heap.time[: self._state.heap.use[0]].max()))
            self._advance(self.now, routing, theta)
        return self._results()

    def _advance(self, until: float, routing: int, theta: float) -> None:
        pane_events.advance(self._state, until, routing, theta, self.workers, self._room)

    def scale(self, workers: int) -> None:
        """Change the number of workers."""
        if not 1 <= workers <= len(self._state.queues.first):
            raise ConfigError(f"need 1 <= workers <= {len(self._state.queues.first)}, got {workers}")
        if workers < self.workers:
            open_panes = len(self._state.panes.closing) - int(self._state.counts[CLOSED])
            if self._state.spare < (open_panes + 1) * len(self._state.queues.first) + len(self._state.panes.closing):
                self._state = self._state.roomier()
            pane_events.turn_off(self._state, self.now, self.workers, workers)
        self.workers = workers

    @property
    def backlog(self) -> int:
        """Tuples in the queues, and arrived tuples that wait for room in a queue."""
        farm = self._state
        come = int(np.searchsorted(farm.tuples.arrival, self.now, side="right"))
        return int(farm.queues.load.sum()) + max(0, come - int(farm.counts[ARRIVED]))

    @property
    def open_partitions(self) -> IntArray:
        """Tuples processed in each partition whose result has not been sent."""
        taken = self._state.partitions.taken
        return taken[taken > 0]

    @property
    def computed(self) -> FloatArray:
        """The time at which the latest tuple of each pane was processed; 0 if none was."""
        return self._state.panes.computed.copy()

    @property
    def dropped(self) -> int:
        return int(self._state.counts[DROPPED])

    @property
    def ended(self) -> bool:
        """Whether all tuples have arrived."""
        return bool(self._state.counts[ARRIVED] == len(self._state.tuples.arrival))

    def _measured(self, seconds: float) -> tuple[SamplingPeriod, tuple[int, ...]]:
        farm, workers, active = self._state, self._state.workers, slice(0, self.workers)
        closed = slice(self._closed, int(farm.counts[CLOSED]))
        sizes = farm.partitions.to[closed][farm.partitions.holds[closed]]
        self._closed = closed.stop
        period = SamplingPeriod(
            seconds=seconds,
            busy=tuple(workers.busy[active].tolist()),
            processed=tuple(workers.done[active].tolist()),
            scheduled=tuple(workers.sent[active].tolist()),
            panes=closed.stop - closed.start,
            partitions=int(farm.panes.parts[closed].sum()),
        )
        for column in (workers.busy, workers.done, workers.sent):
            column[:] = 0
        return period, tuple(sizes.tolist())

    def _results(self) -> PartitionResults:
        results, new = self._state.results, slice(self._taken, int(self._state.counts[RESULTS]))
        self._taken = new.stop
        return PartitionResults(
            results.time[new].copy(),
            results.pane[new].copy(),
            results.worker[new].copy(),
            results.tuples[new].copy(),
            results.counter[new].copy(),
            self._rows(results.head[new], results.rows[new]) if self._exact else None,
        )

    def _rows(self, heads: IntArray, counts: IntArray) -> tuple[IntArray, ...]:
        behind = self._state.partitions.behind
        return tuple(members(behind, *found) for found in zip(heads.tolist(), counts.tolist(), strict=True))


def _routing(policy: Splitting, state: object) -> tuple[int, float]:
    """Return the code of a policy in pane_events.py, and its threshold."""
    if isinstance(policy, ThresholdSplitting):
        return pane_events.THRESHOLD, policy.theta(policy.init() if state is None else state)
    if isinstance(policy, PaneRoundRobin):
        return pane_events.PB_RR, np.inf
    if isinstance(policy, TupleRoundRobin):
        return pane_events.TB_RR, np.inf
    raise ConfigError(f"splitting policy {policy.name} is not supported by the simulator")
