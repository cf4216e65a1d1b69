"""WIN_FB: tasks are sent only to ready workers, so a window never waits for a worker while others are idle.

Without MERGE it is Algorithm 3 of paper 1: a ready worker gets the next task of the window it has just updated, whose
result is in its caches, or else of any window that is not busy. With MERGE it is Algorithms 2 and 3 of paper 5: if all
windows with pending results are busy, ready workers merge pending results in pairs.
"""

from __future__ import annotations

from abc import abstractmethod

from skypane.control.scheduling.events import Feedback, PaneResult, RunTask, Scheduler, Task, WinUpdate
from skypane.control.scheduling.window_directory import WindowDirectory
from skypane.types import ConfigError
from skypane.windows import Windows


class _Pull(Scheduler):
    """Base class of both: the window directory, and the ready workers."""

    def __init__(self, windows: Windows, workers: int, first_pane: int | None = None) -> None:
        super().__init__(windows, workers, first_pane)
        self.directory = WindowDirectory(windows, first_pane)
        #: workers with a task, including those that were turned off and have not reported yet
        self._running: set[int] = set()
        #: workers without a task, in the order of their waiting time, longest first, so that all share the work
        self._waiting: dict[int, None] = dict.fromkeys(range(workers))

    @property
    def ready(self) -> list[int]:
        """Active workers without a task, in the order in which they get the next tasks."""
        return [worker for worker in self._waiting if worker < self.workers]

    def arrived(self, event: PaneResult) -> list[RunTask]:
        self.directory.add(event)
        return self._dispatch()

    def finished(self, event: Feedback) -> list[RunTask]:
        if event.worker not in self._running:
            raise ConfigError(f"worker {event.worker} reports a task that it does not have: {event.task}")
        self._running.discard(event.worker)
        self._waiting[event.worker] = None
        if isinstance(event.task, WinUpdate):
            self.directory.updated(event.task)
        elif event.result is None:
            raise ConfigError(f"feedback on a merge must name its result: {event}")
        else:
            self.directory.merged(event.task, event.result)
        if event.worker >= self.workers:
            return self._dispatch()  # it was turned off, but its result may be work for others
        task = self._next(event.task)
        return [] if task is None else [self._run(event.worker, task)]

    def scale(self, workers: int) -> list[RunTask]:
        self.workers = self._checked(workers)
        for worker in range(workers):
            if worker not in self._running:
                self._waiting.setdefault(worker)
        return self._dispatch()

    def _dispatch(self) -> list[RunTask]:
        ready = self.ready
        return [self._run(worker, task) for worker, task in zip(ready, self._find(len(ready)), strict=False)]

    def _run(self, worker: int, task: Task) -> RunTask:
        del self._waiting[worker]
        self._running.add(worker)
        return RunTask(worker, task)

    def _updates(self, at_most: int) -> list[Task]:
        """Return up to `at_most` updates of windows that are not busy."""
        found: list[Task] = []
        for window, entry in self.directory.open.items():
            if len(found) >= at_most:
                break
            if entry.updatable:
                found.append(self.directory.update(window))
        return found

    @abstractmethod
    def _next(self, done: Task) -> Task | None:
        """Return the next task of the worker that has just finished `done`."""

    @abstractmethod
    def _find(self, at_most: int) -> list[Task]:
        """Return up to `at_most` tasks from the directory for ready workers."""


class WinFb(_Pull):
    """WIN_FB (paper 1, Algorithm 3)."""

    def _next(self, done: Task) -> Task | None:
        entry = self.directory.open.get(done.window)
        if entry is not None and entry.updatable:
            return self.directory.update(done.window)
        return next(iter(self._find(1)), None)

    def _find(self, at_most: int) -> list[Task]:
        return self._updates(at_most)


class WinFbMerge(_Pull):
    """WIN_FB with MERGE (paper 5, Algorithms 2 and 3)."""

    def _next(self, done: Task) -> Task | None:  # noqa: ARG002 - the algorithm takes the oldest window
        return next(iter(self._find(1)), None)

    def _find(self, at_most: int) -> list[Task]:
        found = self._updates(at_most)
        for window, entry in self.directory.open.items():
            if len(found) >= at_most:
                break
            if len(entry.pending) >= 2:
                found.append(self.directory.merge(window))
        return found
