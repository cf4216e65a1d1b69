"""The pane-level farm in plain Python, with the splitting laws' own tuple form: what pane_farm.py must come to."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skypane.control.splitting import Splitting
from skypane.runtime.sim.farm import Stream
from skypane.types import FloatArray


class Close(NamedTuple):
    """The message that a pane is complete."""

    pane: int


class PartitionResult(NamedTuple):
    """What a worker sends on when a pane is closed."""

    time: float
    pane: int
    worker: int
    tuples: int
    counter: int


@dataclass
class Worker:
    """A PLQ worker: its queue, what it has taken of each pane, and how long it worked."""

    queue: deque[int | Close] = field(default_factory=deque)
    taken: dict[int, int] = field(default_factory=dict)
    busy: float = 0.0
    done: int = 0

    @property
    def load(self) -> int:
        return sum(isinstance(item, int) for item in self.queue)


class PlainFarm:
    """A PLQ with a fixed number of workers and a law whose state stays as it is but for what it sends."""

    def __init__(self, stream: Stream, cost: FloatArray, workers: int, law: Splitting, state: Any = None) -> None:
        self.stream, self.cost, self.law = stream, cost, law
        self.state = law.init() if state is None else state
        self.workers = [Worker() for _ in range(workers)]
        self.holders: dict[int, list[int]] = {}
        self.events: list[tuple[float, int, int]] = []
        self.sequence = self.closed = self.dropped = 0
        self.results: list[PartitionResult] = []

    def run(self) -> list[PartitionResult]:
        """Run the whole stream; close what is left at its end; return the results in order of time."""
        now = 0.0
        for item, arriving in enumerate(self.stream.arrival.tolist()):
            self._finish_until(arriving)
            now = arriving
            self._arrive(item, now)
        while self.closed < self.stream.panes:
            self._close(now)
        self._finish_until(float("inf"))
        return self.results

    def _arrive(self, item: int, now: float) -> None:
        while self.closed < self.stream.panes and self.stream.closing[self.closed] <= item:
            self._close(now)
        pane = int(self.stream.pane[item])
        if pane < self.closed:
            self.dropped += 1
        else:
            self.state, worker = self.law.send(self.state, pane, [worker.load for worker in self.workers])
            holders = self.holders.setdefault(pane, [])
            if worker not in holders:
                holders.append(worker)
            self._enqueue(worker, item, now)

    def _close(self, now: float) -> None:
        pane, self.closed = self.closed, self.closed + 1
        loads = [worker.load for worker in self.workers]
        holders = self.holders.setdefault(pane, [loads.index(min(loads))])
        for worker in sorted(holders):
            self._enqueue(worker, Close(pane), now)

    def _enqueue(self, number: int, item: int | Close, now: float) -> None:
        queue = self.workers[number].queue
        queue.append(item)
        if len(queue) == 1:
            self._serve(number, now)

    def _serve(self, number: int, now: float) -> None:
        """Let a worker go on with the head of its queue; messages take no time."""
        worker = self.workers[number]
        while worker.queue:
            head = worker.queue[0]
            if isinstance(head, int):
                taken = worker.taken.get(int(self.stream.pane[head]), 0)
                service = float(self.cost[min(taken, len(self.cost) - 1)] * self.stream.work[head])
                self.sequence += 1
                heapq.heappush(self.events, (now + service, self.sequence, number))
                worker.busy += service
                return
            worker.queue.popleft()
            tuples = worker.taken.pop(head.pane, 0)
            self.results.append(PartitionResult(now, head.pane, number, tuples, len(self.holders[head.pane])))

    def _finish_until(self, time: float) -> None:
        while self.events and self.events[0][0] <= time:
            now, _, number = heapq.heappop(self.events)
            worker = self.workers[number]
            item = worker.queue.popleft()
            pane = int(self.stream.pane[item])
            worker.taken[pane] = worker.taken.get(pane, 0) + 1
            worker.done += 1
            self._serve(number, now)
