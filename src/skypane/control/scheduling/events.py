"""Input events and output instructions of schedulers of window tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

from skypane.types import ConfigError
from skypane.windows import Windows


class PaneResult(NamedTuple):
    """Event: the PLQ has sent the result of a pane partition.

    result    identifier of the result; the scheduler does not need its tuples
    counter   number of partitions of the pane; 0 if it was not known yet when this partition was closed
    """

    result: int
    pane: int
    counter: int = 1


class WinUpdate(NamedTuple):
    """Task: merge a result into the result of a window; `finalized`: it is the window's last one."""

    window: int
    result: int
    finalized: bool = False


class Merge(NamedTuple):
    """Task: merge two results of a window into one."""

    window: int
    first: int
    second: int


Task: TypeAlias = WinUpdate | Merge


class RunTask(NamedTuple):
    """Instruction: a worker executes a task after all its earlier tasks."""

    worker: int
    task: Task


class Feedback(NamedTuple):
    """Event: a worker has finished a task and is ready; `result` identifies the result of a MERGE."""

    worker: int
    task: Task
    result: int | None = None


class Scheduler(ABC):
    """Scheduler of the tasks of a WLQ with workers 0 .. workers - 1.

    Updates of one window never run at the same time. `first_pane` is the first pane of the stream: windows do not wait
    for panes before it.
    """

    def __init__(self, windows: Windows, workers: int, first_pane: int | None = None) -> None:
        self.windows = windows
        self.first_pane = first_pane
        self.workers = self._checked(workers)

    @abstractmethod
    def arrived(self, event: PaneResult) -> list[RunTask]:
        """Return the tasks to run after a result has arrived."""

    @abstractmethod
    def finished(self, event: Feedback) -> list[RunTask]:
        """Return the tasks to run after a worker has become ready."""

    @abstractmethod
    def scale(self, workers: int) -> list[RunTask]:
        """Return the tasks to run after a change to `workers` active workers; the others finish their tasks."""

    @staticmethod
    def _checked(workers: int) -> int:
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        return workers
