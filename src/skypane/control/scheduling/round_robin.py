"""WIN_RR: all tasks of window i go to worker i mod m (paper 1, section 5.3)."""

from __future__ import annotations

from skypane.control.scheduling.events import Feedback, PaneResult, RunTask, Scheduler
from skypane.control.scheduling.window_directory import WindowDirectory
from skypane.types import ConfigError
from skypane.windows import Windows


class WinRr(Scheduler):
    """Static scheduling: each task is sent at once and waits in its worker's queue; bursts go to few workers."""

    def __init__(self, windows: Windows, workers: int, first_pane: int | None = None) -> None:
        super().__init__(windows, workers, first_pane)
        self._directory = WindowDirectory(windows, first_pane)

    def arrived(self, event: PaneResult) -> list[RunTask]:
        runs = []
        for window in self._directory.add(event):
            task = self._directory.update(window)
            # A worker's queue runs in sequence, so the next task may be sent before this one ends.
            self._directory.updated(task)
            runs.append(RunTask(window % self.workers, task))
        return runs

    def finished(self, event: Feedback) -> list[RunTask]:  # noqa: ARG002 - the next task already waits at the worker
        return []

    def scale(self, workers: int) -> list[RunTask]:
        """Change the number of workers; refused while windows are open, since it would move their waiting tasks."""
        if self._directory.open and workers != self.workers:
            raise ConfigError(f"WIN_RR cannot change from {self.workers} to {workers} workers while windows are open")
        self.workers = self._checked(workers)
        return []
