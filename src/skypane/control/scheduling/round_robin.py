"""WIN_RR: the tasks of window i all go to worker i mod m (paper 1, section 5.3)."""

from __future__ import annotations

from skypane.control.scheduling.directory import WindowDirectory
from skypane.control.scheduling.messages import Feedback, PaneResult, Run, Scheduler
from skypane.types import ConfigError
from skypane.windows import Windows


class WinRr(Scheduler):
    """Static: each task is sent at once, and waits in its worker's queue; bursts land on few workers."""

    def __init__(self, windows: Windows, workers: int, first_pane: int | None = None) -> None:
        super().__init__(windows, workers, first_pane)
        self._directory = WindowDirectory(windows, first_pane)

    def arrived(self, event: PaneResult) -> list[Run]:
        runs = []
        for window in self._directory.add(event):
            task = self._directory.update(window)
            # What waits in a worker's queue runs one after the other: the next task may be sent before this one ends.
            self._directory.updated(task)
            runs.append(Run(window % self.workers, task))
        return runs

    def finished(self, event: Feedback) -> list[Run]:  # noqa: ARG002 - what is next waits at the worker already
        return []

    def scale(self, workers: int) -> list[Run]:
        """Windows are bound to workers: another number would move them while their tasks wait."""
        if self._directory.open and workers != self.workers:
            raise ConfigError(f"WIN_RR cannot go from {self.workers} to {workers} workers with windows open")
        self.workers = self._checked(workers)
        return []
