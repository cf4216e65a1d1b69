"""A stream made ready for the pane-level farm, and the farm as an object that advances by intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skypane.control.monitoring import Period
from skypane.control.splitting import PaneRoundRobin, Sample, Splitting, TupleRoundRobin
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.runtime.sim import pane_farm
from skypane.runtime.sim.heap import empty_heap
from skypane.runtime.sim.pane_farm import Farm
from skypane.types import ConfigError, FloatArray, IntArray, Micros
from skypane.windows import Windows

_SPARE = 4
"""Control messages for each partition at first: it is closed once, and by force as often as its worker is turned off."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Tuples in order of arrival: seconds since the start, pane (from 0), work (1 is usual); closing as in Farm."""

    arrival: FloatArray
    pane: IntArray
    work: FloatArray
    closing: IntArray

    @classmethod
    def of(cls, windows: Windows, event: IntArray, arrival: IntArray, slack: Micros) -> Stream:
        """Return the stream of these event and arrival times (microseconds), closed by a constant slack (tp = tmax - K)."""
        if len(event) != len(arrival) or not len(event):
            raise ConfigError(f"need an event and an arrival time for each tuple, got {len(event)} and {len(arrival)}")
        panes = windows.panes_at(event)
        first = int(panes.min())
        punctuation = np.maximum.accumulate(event) - slack
        ends = windows.pane_end(np.arange(first, int(panes.max()) + 1))
        return cls(
            arrival=(arrival - arrival[0]) / 1e6,
            pane=panes - first,
            work=np.ones(len(event)),
            closing=np.searchsorted(punctuation, ends),
        )

    @property
    def panes(self) -> int:
        return len(self.closing)

    @cached_property
    def begun(self) -> FloatArray:
        """By pane, when its first tuple comes; infinite if none does."""
        found = np.full(self.panes, np.inf)
        found[self.pane[::-1]] = self.arrival[::-1]  # of several tuples, the one that is written last stays
        return found

    @cached_property
    def closed(self) -> FloatArray:
        """By pane, when it is closed; the end of the stream if that is not within it."""
        return self.arrival[np.minimum(self.closing, len(self.arrival) - 1)]


class Results(NamedTuple):
    """Partition results: seconds, pane, worker, tuples, partition counter (0: closed by force); each (r,)."""

    time: FloatArray
    pane: IntArray
    worker: IntArray
    tuples: IntArray
    counter: IntArray


class Interval(NamedTuple):
    """What an interval showed: what the splitting law is told, the period in it, and the results that came out."""

    sample: Sample
    period: Period
    results: Results


class PaneFarm:
    """A PLQ of up to `most` workers; `cost` (K,) is the seconds of a tuple in a partition that has taken k before it."""

    def __init__(self, stream: Stream, cost: FloatArray, workers: int, most: int | None = None) -> None:
        most = most or workers
        if not 1 <= workers <= most:
            raise ConfigError(f"need 1 <= workers <= {most}, got {workers}")
        if not len(cost) or not (cost >= 0).all():
            raise ConfigError("a tuple's cost must be known, and not negative")
        self._arrays = _arrays(stream, cost, most)
        self.workers = workers
        self.now = 0.0
        self._taken = self._closed = 0

    def advance(self, until: float, law: Splitting, state: object = None) -> Interval:
        """Go on to a time; return what was measured since the last one, and the results that came out."""
        if until <= self.now:
            raise ConfigError(f"time goes on: from {self.now} to {until} is no interval")
        policy, theta = _routing(law, state)
        pane_farm.advance(self._arrays, until, policy, theta, self.workers)
        period, sizes = self._measured(until - self.now)
        self.now = until
        return Interval(Sample(period, sizes), period, self._results())

    def finish(self, law: Splitting, state: object = None) -> Results:
        """Take what is left of the stream, close all panes, and work off what waits."""
        policy, theta = _routing(law, state)
        self.now = max(self.now, float(self._arrays.arrival[-1]))
        pane_farm.advance(self._arrays, self.now, policy, theta, self.workers)
        while self._arrays.counts[pane_farm.CLOSED] < len(self._arrays.closing):
            pane_farm.close_next(self._arrays, self.now, self.workers)
        while self._arrays.heap.use[0]:
            self.now = max(self.now, float(self._arrays.heap.time[: self._arrays.heap.use[0]].max()))
            pane_farm.advance(self._arrays, self.now, policy, theta, self.workers)
        return self._results()

    def scale(self, workers: int) -> None:
        """Go on with so many workers."""
        if not 1 <= workers <= len(self._arrays.first):
            raise ConfigError(f"need 1 <= workers <= {len(self._arrays.first)}, got {workers}")
        if workers < self.workers:
            open_panes = len(self._arrays.closing) - int(self._arrays.counts[pane_farm.CLOSED])
            if _room(self._arrays) < (open_panes + 1) * len(self._arrays.first) + len(self._arrays.closing):
                self._arrays = _roomier(self._arrays)
            pane_farm.turn_off(self._arrays, self.now, self.workers, workers)
        self.workers = workers

    @property
    def backlog(self) -> int:
        """Tuples in the queues."""
        return int(self._arrays.load.sum())

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
        )


def _routing(law: Splitting, state: object) -> tuple[int, float]:
    if isinstance(law, ThresholdSplitting):
        return pane_farm.THRESHOLD, law.theta(law.init() if state is None else state)
    if isinstance(law, PaneRoundRobin):
        return pane_farm.PB_RR, np.inf
    if isinstance(law, TupleRoundRobin):
        return pane_farm.TB_RR, np.inf
    raise ConfigError(f"the simulator has no compiled form of {law.name}")


def _room(farm: Farm) -> int:
    """Return how many control messages may still be sent."""
    return len(farm.control) - int(farm.counts[pane_farm.CONTROLS])


def _roomier(farm: Farm) -> Farm:
    """Return the farm with room for twice the control messages, and as many results."""
    results = [name for name in Farm._fields if name.startswith("result_")]
    more: dict[str, Any] = {
        name: np.concatenate([getattr(farm, name), np.zeros_like(getattr(farm, name))]) for name in results
    }
    after = np.concatenate([farm.after, np.full(len(farm.control), -1)])
    return farm._replace(control=np.concatenate([farm.control, np.zeros_like(farm.control)]), after=after, **more)


def _arrays(stream: Stream, cost: FloatArray, most: int) -> Farm:
    tuples, panes = len(stream.arrival), stream.panes
    partitions = panes * most
    controls = _SPARE * partitions + panes
    whole = np.int64
    return Farm(
        arrival=np.ascontiguousarray(stream.arrival, np.float64),
        work=np.ascontiguousarray(stream.work, np.float64),
        pane=np.ascontiguousarray(stream.pane, whole),
        closing=np.ascontiguousarray(stream.closing, whole),
        cost=np.ascontiguousarray(cost, np.float64),
        first=np.full(most, -1, whole),
        last=np.full(most, -1, whole),
        load=np.zeros(most, whole),
        began=np.zeros(most),
        busy=np.zeros(most),
        done=np.zeros(most, whole),
        sent=np.zeros(most, whole),
        after=np.full(tuples + controls, -1, whole),
        control=np.zeros(controls, whole),
        to=np.zeros((panes, most), whole),
        taken=np.zeros((panes, most), whole),
        holds=np.zeros((panes, most), np.bool_),
        owner=np.full(panes, -1, whole),
        parts=np.zeros(panes, whole),
        computed=np.zeros(panes),
        result_time=np.zeros(controls),
        result_pane=np.zeros(controls, whole),
        result_worker=np.zeros(controls, whole),
        result_tuples=np.zeros(controls, whole),
        result_counter=np.zeros(controls, whole),
        counts=np.zeros(6, whole),
        heap=empty_heap(most + 1),
    )
