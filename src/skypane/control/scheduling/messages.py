"""Events in, instructions out: what a scheduler of window tasks is told, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

from skypane.types import ConfigError
from skypane.windows import Windows


class PaneResult(NamedTuple):
    """The result of a pane partition came from the PLQ.

    result    names it; the tuples themselves are none of the scheduler's business
    counter   how many partitions the pane has; 0 if that was not known yet where this one was closed
    """

    result: int
    pane: int
    counter: int = 1


class WinUpdate(NamedTuple):
    """The task to take a result into a window's; `finalized`: it is the window's last."""

    window: int
    result: int
    finalized: bool = False


class Merge(NamedTuple):
    """The task to make one result of two, which both belong to a window."""

    window: int
    first: int
    second: int


Task: TypeAlias = WinUpdate | Merge


class Run(NamedTuple):
    """Instruction: this worker is to execute this task, after those that it was given before."""

    worker: int
    task: Task


class Feedback(NamedTuple):
    """A worker has finished a task and is ready; `result` names what a MERGE made."""

    worker: int
    task: Task
    result: int | None = None


class Scheduler(ABC):
    """Schedules the tasks of a WLQ with workers 0 .. workers - 1.

    Tasks of one window never run at the same time. `first_pane` is the first pane of the stream: a window that reaches
    further back waits for no pane before it.
    """

    def __init__(self, windows: Windows, workers: int, first_pane: int | None = None) -> None:
        self.windows = windows
        self.first_pane = first_pane
        self.workers = self._checked(workers)

    @abstractmethod
    def arrived(self, event: PaneResult) -> list[Run]:
        """Return what is to run now that a result has come."""

    @abstractmethod
    def finished(self, event: Feedback) -> list[Run]:
        """Return what is to run now that a worker is ready."""

    @abstractmethod
    def scale(self, workers: int) -> list[Run]:
        """Return what is to run now that so many workers are active; those beyond finish what they have."""

    @staticmethod
    def _checked(workers: int) -> int:
        if workers < 1:
            raise ConfigError(f"need at least one window worker, got {workers}")
        return workers
