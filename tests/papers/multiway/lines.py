"""Threads that may alternate at every line of Python: a test chooses what happens between two lines of the designs.

Kernels run whole, as one step, except those that a test replaces by their twins (twin.py), which are lines as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from tests.papers.multiway.twin import Scheduler

import skypane_papers.multiway

_FOLDER = str(Path(skypane_papers.multiway.__file__).parent)


def by_lines(scheduler: Scheduler, body: Callable[[], None], *kernels: str) -> Callable[[], None]:
    """Return a body that lets other threads run before each line of skypane_papers.multiway, and of these modules' twins."""

    def line(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            scheduler.turn()
        return line

    def called(frame: FrameType, _: str, __: Any) -> Any:
        name = frame.f_code.co_filename
        return line if name.startswith(_FOLDER) or name in kernels else None

    def run() -> None:
        before = sys.gettrace()
        sys.settrace(called)
        try:
            body()
        finally:
            sys.settrace(before)

    return run


class TurnLock:
    """A lock among alternating threads: a thread that finds it taken lets the others run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._taken = False

    def __enter__(self) -> None:
        while self._taken:
            self._scheduler.give_way()
        self._taken = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taken = False
