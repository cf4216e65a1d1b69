"""The pane-level farm in plain Python, with the splitting policies' own tuple form: what pane_farm.py must come to.

The emitter's knowledge is a PaneDirectory, and workers see nothing but the messages that it sends: tuples with the
pane's counter, EMPTY, UPDATE_CNT, punctuations, TURNOFF (paper 5, section 4.1).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skypane.control.scheduling.partitions import Close, Empty, Message, PaneDirectory, Tuple, TurnOff, UpdateCount
from skypane.control.splitting import Splitting
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import FloatArray


class PartitionResult(NamedTuple):
    """What a worker sends on when a pane is closed; the counter is 0 if it was closed by force; rows where points are known."""

    time: float
    pane: int
    worker: int
    tuples: int
    counter: int
    rows: frozenset[int] = frozenset()


class Item(NamedTuple):
    """A tuple of the stream, in a message."""

    number: int
    message: Tuple


@dataclass
class Worker:
    """A PLQ worker: its queue, what it has taken of each pane, its results, the counters it received, how long it worked."""

    queue: deque[Item | Message] = field(default_factory=deque)
    taken: dict[int, int] = field(default_factory=dict)
    rows: dict[int, list[int]] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)
    busy: float = 0.0
    done: int = 0

    @property
    def load(self) -> int:
        return sum(isinstance(item, Item) for item in self.queue)

    def processed_message(self, message: Message) -> list[tuple[int, int, int, frozenset[int]]]:
        """Take a message that is not a tuple; return (pane, tuples, counter, rows) of each partition that it closes."""
        match message:
            case Empty(pane=pane, counter=counter) | UpdateCount(pane=pane, counter=counter):
                assert isinstance(message, UpdateCount) or pane not in self.counters
                self.counters[pane] = counter
            case Close(below=below):
                return [self._out(pane, 1) for pane in sorted(self.counters) if pane < below]
            case TurnOff():
                return [self._out(pane, 0) for pane in sorted(self.counters)]
        return []

    def _out(self, pane: int, known: int) -> tuple[int, int, int, frozenset[int]]:
        return pane, self.taken.pop(pane, 0), known * self.counters.pop(pane), frozenset(self.rows.pop(pane, ()))


class PlainFarm:
    """A PLQ and a policy, whose state stays as it is except for what it sends."""

    def __init__(
        self,
        stream: SimulatedStream,
        cost: FloatArray,
        workers: int,
        policy: Splitting,
        state: Any = None,
        room: float = float("inf"),
    ) -> None:
        self.stream, self.cost, self.policy, self.room = stream, cost, policy, room
        self.state = policy.init() if state is None else state
        self.workers = [Worker() for _ in range(workers)]
        self.active = workers
        self.directory = PaneDirectory(0, range(workers))
        self.events: list[tuple[float, int, int, int]] = []
        self.sequence = self.arrived = self.closed = self.dropped = 0
        self.clock = 0.0
        self.results: list[PartitionResult] = []

    def run(self) -> list[PartitionResult]:
        """Run the whole stream; close what is left at its end; return the results in order of time."""
        self.advance(float(self.stream.arrival[-1]))
        return self.finish(self.clock)

    def advance(self, until: float) -> None:
        """Let everything happen up to a time."""
        arrival = self.stream.arrival
        while self.arrived < len(arrival):
            now = max(float(arrival[self.arrived]), self.clock)
            if now > until:
                break
            self._finish_until(now)
            if self._arrive(self.arrived, now):
                self.arrived += 1
                self.clock = now
            else:
                self.clock = self.events[0][0]  # there may be room when the next service ends
        if until < float("inf"):
            self._finish_until(until)

    def finish(self, now: float) -> list[PartitionResult]:
        """Take what is left of the stream, close all panes, and work off the backlog."""
        self.advance(float("inf"))
        now = max(now, self.clock)
        while self.closed < self.stream.panes:
            self._close(now)
        self._finish_until(float("inf"))
        return self.results

    def scale(self, workers: int, now: float) -> None:
        """ADD or REMOVE workers; those that sleep are used again, before new ones are made."""
        while len(self.workers) < workers:
            self.workers.append(Worker())
        removed = range(workers, self.active)
        self.active = workers
        if removed:
            self._tell(self.directory.remove(removed, self._loads), now)
            self.state = self.policy.removed(self.state, workers, self.directory.owners)
        self.directory.add(range(workers))

    @property
    def _loads(self) -> list[int]:
        return [worker.load for worker in self.workers]

    def _arrive(self, number: int, now: float) -> bool:
        """Send a tuple, or drop it; return whether there was room for it."""
        while self.closed < self.stream.panes and self.stream.closing[self.closed] <= number:
            self._close(now)
        pane = int(self.stream.pane[number])
        if pane < self.closed:
            self.dropped += 1
            return True
        state, worker = self.policy.send(self.state, pane, self._loads[: self.active])
        if self.workers[worker].load >= self.room:
            return False
        self.state = state
        for message in self.directory.sent(pane, worker):
            if isinstance(message, Tuple):
                self._enqueue(worker, Item(number, message), now)
            else:
                self._enqueue(message.worker, message, now)
        return True

    def _close(self, now: float) -> None:
        self.closed += 1
        self._tell(self.directory.close(self.closed, self._loads), now)

    def _tell(self, messages: Iterable[Message], now: float) -> None:
        for message in messages:
            self._enqueue(message.worker, message, now)

    def _enqueue(self, number: int, item: Item | Message, now: float) -> None:
        queue = self.workers[number].queue
        queue.append(item)
        if len(queue) == 1:
            self._serve(number, now)

    def _serve(self, number: int, now: float) -> None:
        """Let a worker go on with the head of its queue; messages take no time."""
        worker = self.workers[number]
        while worker.queue:
            head = worker.queue[0]
            if isinstance(head, Item):
                pane = head.message.pane
                worker.counters.setdefault(pane, head.message.counter)
                level = worker.taken.get(pane, 0) if self.stream.points is None else len(worker.rows.get(pane, ()))
                service = float(self.cost[min(level, len(self.cost) - 1)] * self.stream.work[head.number])
                self.sequence += 1
                heapq.heappush(self.events, (now + service, self.sequence, number, pane))
                worker.busy += service
                return
            worker.queue.popleft()
            self.results += [
                PartitionResult(now, pane, number, tuples, counter, rows)
                for pane, tuples, counter, rows in worker.processed_message(head)
            ]

    def _finish_until(self, time: float) -> None:
        while self.events and self.events[0][0] <= time:
            now, _, number, pane = heapq.heappop(self.events)
            worker = self.workers[number]
            item = worker.queue.popleft()
            worker.taken[pane] = worker.taken.get(pane, 0) + 1
            if self.stream.points is not None and isinstance(item, Item):
                worker.rows[pane] = self._skyline([*worker.rows.get(pane, ()), item.number])
            worker.done += 1
            self._serve(number, now)

    def _skyline(self, rows: list[int]) -> list[int]:
        """Return those that none of the others is better than: by definition, each against each."""
        points = {row: tuple(self.stream.points[row]) for row in rows} if self.stream.points is not None else {}
        return [row for row in rows if not any(_better(points[other], points[row]) for other in rows)]


def _better(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(x <= y for x, y in zip(one, other, strict=True))
