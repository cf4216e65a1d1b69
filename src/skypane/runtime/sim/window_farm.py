"""The window-level farm in virtual time: a scheduler decides, workers take as long as the results are large."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from skypane.control.monitoring import Period
from skypane.control.scheduling import Feedback, Merge, PaneResult, Run, Scheduler
from skypane.kernels.skyline import skyline_indices
from skypane.runtime.sim.costs import CostModel
from skypane.types import FloatArray, IntArray


class Result(NamedTuple):
    """A result by what it stands for: how many tuples, how many of them are left, and which, where tuples have points."""

    tuples: float
    size: float
    rows: IntArray | None = None


_NOTHING: Final = Result(0, 0, np.empty(0, np.int64))


class Answer(NamedTuple):
    """A window that is done: when, which, how large."""

    time: float
    window: int
    size: float


@dataclass
class _Interval:
    """What is counted from one measurement to the next; lists by worker."""

    busy: list[float]
    done: list[int]
    sent: list[int]
    merges: int = 0
    updates: int = 0
    answers: list[Answer] = field(default_factory=list)


class WindowFarm:
    """A WLQ whose emitter is a Scheduler; the collector gives answers in window order.

    points   (n, d) values of the tuples, by which results are united; None: how large they are is fitted
    """

    def __init__(self, scheduler: Scheduler, cost: CostModel, most: int, points: FloatArray | None = None) -> None:
        self._scheduler, self._cost, self._most, self._points = scheduler, cost, most, points
        self._results: dict[int, Result] = {}
        self._uses: dict[int, int] = {}
        self._windows: dict[int, Result] = {}
        self._events: list[tuple[float, int, Run, float]] = []
        self._free = [0.0] * most
        self._sequence = self._made = 0
        self._counted = self._fresh()
        self.now = 0.0

    def _fresh(self) -> _Interval:
        return _Interval([0.0] * self._most, [0] * self._most, [0] * self._most)

    def arrive(self, time: float, pane: int, result: Result, counter: int) -> None:
        """A partition result comes from the PLQ."""
        self.until(time)
        self.now = max(self.now, time)
        name = self._name(result, uses=len(self._scheduler.windows.windows_of(pane)))
        self._start(self._scheduler.arrived(PaneResult(name, pane, counter)))

    def scale(self, workers: int) -> None:
        """Go on with so many workers."""
        self._start(self._scheduler.scale(workers))

    def until(self, time: float) -> None:
        """Let tasks end up to a time."""
        while self._events and self._events[0][0] <= time:
            self.now, _, run, seconds = heapq.heappop(self._events)
            self._counted.busy[run.worker] += seconds
            self._counted.done[run.worker] += 1
            self._start(self._scheduler.finished(self._finished(run)))

    def _start(self, runs: list[Run]) -> None:
        for run in runs:
            self._sequence += 1
            seconds = self._seconds(run)
            end = max(self.now, self._free[run.worker]) + seconds
            self._free[run.worker] = end
            self._counted.sent[run.worker] += 1
            heapq.heappush(self._events, (end, self._sequence, run, seconds))

    def _seconds(self, run: Run) -> float:
        """Return how long a task takes; an update has its effect on the window here, since updates keep their order."""
        task = run.task
        if isinstance(task, Merge):
            return self._cost.merge(self._results[task.first].size, self._results[task.second].size)
        result, window = self._taken(task.result), self._windows.get(task.window, _NOTHING)
        self._windows[task.window] = self._united(window, result)
        return self._cost.merge(window.size, result.size)

    def _finished(self, run: Run) -> Feedback:
        task = run.task
        if isinstance(task, Merge):
            self._counted.merges += 1
            made = self._united(self._taken(task.first), self._taken(task.second))
            return Feedback(run.worker, task, self._name(made, uses=1))
        self._counted.updates += 1
        if task.finalized:
            self._counted.answers.append(Answer(self.now, task.window, self._windows.pop(task.window).size))
        return Feedback(run.worker, task)

    def _united(self, first: Result, second: Result) -> Result:
        tuples = first.tuples + second.tuples
        if self._points is None or first.rows is None or second.rows is None:
            return Result(tuples, self._cost.united(tuples, first.size, second.size))
        rows = np.concatenate([first.rows, second.rows])
        rows = rows[skyline_indices(self._points[rows])]
        return Result(tuples, len(rows), rows)

    def _name(self, result: Result, uses: int) -> int:
        """Keep a result that so many windows will take."""
        self._made += 1
        self._results[self._made], self._uses[self._made] = result, uses
        return self._made

    def _taken(self, name: int) -> Result:
        self._uses[name] -= 1
        return self._results[name] if self._uses[name] else self._results.pop(name)

    def measured(self, seconds: float) -> tuple[Period, list[Answer], int, int]:
        """Return what was measured in so many seconds: the period, answers, merges and updates.

        A task counts where it ends: one that is longer than an interval makes its worker busier than the interval is long.
        """
        counted, self._counted = self._counted, self._fresh()
        workers = slice(0, self._scheduler.workers)
        period = Period(
            seconds=seconds,
            busy=tuple(counted.busy[workers]),
            processed=tuple(counted.done[workers]),
            scheduled=tuple(counted.sent[workers]),
        )
        return period, counted.answers, counted.merges, counted.updates

    @property
    def waiting(self) -> int:
        """Results that some window still needs."""
        return len(self._results)
