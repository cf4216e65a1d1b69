"""The window-level farm in virtual time: a scheduler assigns tasks, whose durations depend on the sizes of results."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from skypane.control.monitoring import SamplingPeriod
from skypane.control.scheduling import Feedback, Merge, PaneResult, RunTask, Scheduler
from skypane.kernels.batch_skyline import skyline_indices
from skypane.runtime.sim.cost_models import CostModel
from skypane.types import FloatArray, IntArray


class WindowResult(NamedTuple):
    """A result: the tuples it was computed from, its size, and, if tuples have points, its rows.

    share   without points: estimated size as a share of the usual one, the mean over the tuples
    """

    tuples: float
    size: float
    rows: IntArray | None = None
    share: float = 1.0


_NOTHING: Final = WindowResult(0, 0, np.empty(0, np.int64))


class CompletedWindow(NamedTuple):
    """An answered window: when its answer was returned, window, size of the answer."""

    time: float
    window: int
    size: float


@dataclass
class _Interval:
    """Counters between two measurements; lists are by worker."""

    busy: list[float]
    done: list[int]
    sent: list[int]
    merges: int = 0
    updates: int = 0
    answers: list[CompletedWindow] = field(default_factory=list)


class WindowFarm:
    """A WLQ whose emitter is a Scheduler; the collector returns answers in window order.

    points   (n, d) values of the tuples, from which results are merged exactly; None: sizes of results are estimated
    """

    def __init__(self, scheduler: Scheduler, cost: CostModel, most: int, points: FloatArray | None = None) -> None:
        self._scheduler, self._cost, self._most, self._points = scheduler, cost, most, points
        self._results: dict[int, WindowResult] = {}
        self._uses: dict[int, int] = {}
        self._windows: dict[int, WindowResult] = {}
        self._open: list[int] = []  # a heap of the windows that are not returned yet
        self._known: set[int] = set()
        self._complete: dict[int, float] = {}
        self._events: list[tuple[float, int, RunTask, float]] = []
        self._free = [0.0] * most
        self._sequence = self._made = 0
        self._pending = 0
        self._counted = self._fresh()
        self.now = 0.0

    def _fresh(self) -> _Interval:
        return _Interval([0.0] * self._most, [0] * self._most, [0] * self._most)

    def arrive(self, time: float, pane: int, result: WindowResult, counter: int) -> None:
        """Take a partition result from the PLQ."""
        self.until(time)
        self.now = max(self.now, time)
        windows = self._scheduler.windows.windows_of(pane)
        for window in windows:
            if window not in self._known:
                self._known.add(window)
                heapq.heappush(self._open, window)
        self._pending += len(windows)
        name = self._name(result, uses=len(windows))
        self._start(self._scheduler.arrived(PaneResult(name, pane, counter)))

    def scale(self, workers: int) -> None:
        """Change the number of workers."""
        self._start(self._scheduler.scale(workers))

    def until(self, time: float) -> None:
        """Execute tasks up to a time."""
        while self._events and self._events[0][0] <= time:
            self.now, _, run, seconds = heapq.heappop(self._events)
            self._counted.busy[run.worker] += seconds
            self._counted.done[run.worker] += 1
            self._start(self._scheduler.finished(self._finished(run)))

    def _start(self, runs: list[RunTask]) -> None:
        for run in runs:
            self._sequence += 1
            self._pending -= 1
            seconds = self._seconds(run)
            end = max(self.now, self._free[run.worker]) + seconds
            self._free[run.worker] = end
            self._counted.sent[run.worker] += 1
            heapq.heappush(self._events, (end, self._sequence, run, seconds))

    def _seconds(self, run: RunTask) -> float:
        """Return the duration of a task; an update changes the window here already, since updates keep their order."""
        task = run.task
        if isinstance(task, Merge):
            return self._cost.merge(self._results[task.first].size, self._results[task.second].size)
        result, window = self._taken(task.result), self._windows.get(task.window, _NOTHING)
        self._windows[task.window] = self._united(window, result)
        return self._cost.merge(window.size, result.size)

    def _finished(self, run: RunTask) -> Feedback:
        task = run.task
        if isinstance(task, Merge):
            self._counted.merges += 1
            made = self._united(self._taken(task.first), self._taken(task.second))
            return Feedback(run.worker, task, self._name(made, uses=1))
        self._counted.updates += 1
        if task.finalized:
            self._complete[task.window] = self._windows.pop(task.window).size
            self._return()
        return Feedback(run.worker, task)

    def _return(self) -> None:
        """Return complete answers up to the first window that is not answered yet: the collector keeps the order."""
        while self._open and self._open[0] in self._complete:
            window = heapq.heappop(self._open)
            self._counted.answers.append(CompletedWindow(self.now, window, self._complete.pop(window)))

    def _united(self, first: WindowResult, second: WindowResult) -> WindowResult:
        tuples = first.tuples + second.tuples
        if self._points is None or first.rows is None or second.rows is None:
            share = (first.tuples * first.share + second.tuples * second.share) / tuples if tuples else 1.0
            return WindowResult(tuples, self._cost.united(tuples, first.size, second.size, share), share=share)
        rows = np.concatenate([first.rows, second.rows])
        rows = rows[skyline_indices(self._points[rows])]
        return WindowResult(tuples, len(rows), rows)

    def _name(self, result: WindowResult, uses: int) -> int:
        """Store a result that `uses` windows or merges will take; return its name."""
        self._made += 1
        self._results[self._made], self._uses[self._made] = result, uses
        return self._made

    def _taken(self, name: int) -> WindowResult:
        self._uses[name] -= 1
        return self._results[name] if self._uses[name] else self._results.pop(name)

    def measured(self, seconds: float) -> tuple[SamplingPeriod, list[CompletedWindow], int, int]:
        """Return the measurements of the last `seconds` seconds: the sampling period, answers, merges and updates.

        A task counts in the interval in which it ends, so a task longer than an interval makes the busy time exceed it.
        """
        counted, self._counted = self._counted, self._fresh()
        workers = slice(0, self._scheduler.workers)
        period = SamplingPeriod(
            seconds=seconds,
            busy=tuple(counted.busy[workers]),
            processed=tuple(counted.done[workers]),
            scheduled=tuple(counted.sent[workers]),
        )
        return period, counted.answers, counted.merges, counted.updates

    @property
    def pending(self) -> int:
        """Tasks that wait for a ready worker: each window needs one per result, and a merge makes one of two results."""
        return self._pending

    @property
    def waiting(self) -> int:
        """The number of results that windows still need."""
        return len(self._results)
