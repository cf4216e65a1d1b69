"""The parallel eager algorithm of paper 4 (sections 4 and 5.2), message by message: emitter, workers, collector.

A point goes to all workers; one owns it. Each prunes its own points, and sends how long the point is dominated by one of
them; the collector reduces these times by max, and sends the result to the owner. A synchronous owner waits for it. An
asynchronous one goes on, and keeps the updates that it makes meanwhile in a buffer, because those of the point may come
before them.

What may leave the buffer: updates before the arrival of the oldest point that is still being reduced, since nothing older
can come of it. The paper emits updates up to the influence time of the point whose result has come; that may be later than
the arrival of a point still pending, whose ADD would then come out of order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.operators.fronts.eager import Kind, Point, Update, dominates

from skypane.operators.fronts.front_operator import ADD, DEL
from skypane.types import Micros

FOREVER: Micros = 2**62
NEVER: Micros = -(2**62)


class Arrival(NamedTuple):
    """A point as the emitter sends it, with the worker that owns it; arrival times ascend, and are all different."""

    row: int
    values: tuple[float, ...]
    time: Micros
    owner: int


@dataclass
class Pending:
    """A point whose reduce is under way, and when another has pruned it meanwhile, if one has."""

    point: Point
    arrived: Micros
    pruned: Micros | None = None


@dataclass
class Worker:
    """One worker: its part of DB, with the events of its points, and the updates that it may not emit yet."""

    index: int
    window: Micros
    db: dict[int, Point] = field(default_factory=dict)
    events: list[tuple[Micros, int, int]] = field(default_factory=list)
    pending: dict[int, Pending] = field(default_factory=dict)
    buffer: list[Update] = field(default_factory=list)
    clock: Micros = NEVER

    def receive(self, arrival: Arrival) -> Micros:
        """Let time come to the arrival, prune, store the point if it is this worker's; return the local influence time."""
        self.advance(arrival.time)
        for other in [other for other in self.db.values() if dominates(arrival.values, other.values)]:
            del self.db[other.row]
            if other.row in self.pending:
                self.pending[other.row].pruned = arrival.time
            elif other.is_skyline:
                self.buffer.append(Update(arrival.time, DEL, other.row))
        dominators = (other.expires for other in self.db.values() if dominates(other.values, arrival.values))
        local = max(dominators, default=NEVER)
        if arrival.owner == self.index:
            point = Point(arrival.row, arrival.values, arrival.time + self.window, is_skyline=False)
            self.db[arrival.row] = point
            self.pending[arrival.row] = Pending(point, arrival.time)
        return local

    def resolve(self, row: int, influence: Micros) -> None:
        """Take the result of a reduce: the three cases of section 5.2."""
        pending = self.pending.pop(row)
        point = pending.point
        enters = max(pending.arrived, influence)
        leaves = point.expires if pending.pruned is None else min(pending.pruned, point.expires)
        if pending.pruned is not None or leaves <= self.clock:  # it is over: pruned, or expired while it was pending
            self.db.pop(row, None)
            if enters < leaves:
                self.buffer += [Update(enters, ADD, row), Update(leaves, DEL, row)]
        elif enters <= self.clock:
            self._enter(point, enters)
        else:
            heapq.heappush(self.events, (enters, Kind.SKYTIME.value, row))

    def advance(self, now: Micros) -> None:
        """Let the events up to `now` happen; windows are open at their end, so those at `now` itself come first."""
        while self.events and self.events[0][0] <= now:
            time, kind, row = heapq.heappop(self.events)
            point = self.db.get(row)
            if point is None:
                continue
            if kind == Kind.SKYTIME.value:
                self._enter(point, time)
            else:
                del self.db[row]
                self.buffer.append(Update(time, DEL, row))
        self.clock = max(self.clock, now)

    def release(self) -> tuple[list[Update], Micros]:
        """Return the updates that nothing older can precede any more, in order, and the time up to which all are emitted."""
        oldest = min((pending.arrived for pending in self.pending.values()), default=None)
        until = self.clock if oldest is None else oldest - 1
        ready = sorted(update for update in self.buffer if update.time <= until)
        self.buffer = [update for update in self.buffer if update.time > until]
        return ready, until

    def _enter(self, point: Point, time: Micros) -> None:
        point.is_skyline = True
        self.buffer.append(Update(time, ADD, point.row))
        heapq.heappush(self.events, (point.expires, Kind.EXPIRE.value, point.row))


@dataclass
class Collector:
    """Reduces influence times, and puts the updates of all workers in order of time."""

    workers: int
    partial: dict[int, list[Micros]] = field(default_factory=dict)
    queue: list[Update] = field(default_factory=list)
    reported_until: list[Micros] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reported_until = [NEVER] * self.workers

    def reduce(self, row: int, local: Micros) -> Micros | None:
        """Take a local influence time; return the global one when it is the last."""
        times = self.partial.setdefault(row, [])
        times.append(local)
        return max(self.partial.pop(row)) if len(times) == self.workers else None

    def take(self, worker: int, updates: Iterable[Update], until: Micros) -> Iterator[Update]:
        """Take updates of a worker, all that it has up to `until`; yield those that can come no later from any worker."""
        for update in updates:
            heapq.heappush(self.queue, update)
        self.reported_until[worker] = until
        while self.queue and self.queue[0].time <= min(self.reported_until):
            yield heapq.heappop(self.queue)


Step = tuple[str, int]
"""What may happen next: "point" or "result", and the worker that takes it."""


def run(
    arrivals: Sequence[Arrival],
    window: Micros,
    workers: int,
    choose: Callable[[Sequence[Step]], Step],
    *,
    asynchronous: bool,
) -> Iterator[Update]:
    """Yield the updates of a stream, in order of time; `choose` says which of the steps that are possible comes next."""
    farm = [Worker(index, window) for index in range(workers)]
    collector = Collector(workers)
    points = [deque(arrivals) for _ in farm]
    results: list[deque[tuple[int, Micros]]] = [deque() for _ in farm]
    while steps := _possible(farm, points, results, asynchronous=asynchronous):
        kind, index = choose(steps)
        worker = farm[index]
        if kind == "point":
            arrival = points[index].popleft()
            influence = collector.reduce(arrival.row, worker.receive(arrival))
            if influence is not None:
                results[arrival.owner].append((arrival.row, influence))
        else:
            worker.resolve(*results[index].popleft())
        yield from collector.take(index, *worker.release())
    for worker in farm:
        worker.advance(FOREVER)
        yield from collector.take(worker.index, *worker.release())


def _possible(
    farm: list[Worker], points: list[deque[Arrival]], results: list[deque[tuple[int, Micros]]], *, asynchronous: bool
) -> list[Step]:
    """Return the steps that are possible; a synchronous owner takes no point before the result of its last."""
    steps = [("result", worker.index) for worker in farm if results[worker.index]]
    steps += [("point", w.index) for w in farm if points[w.index] and (asynchronous or not w.pending)]
    return steps
