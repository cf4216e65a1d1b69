"""Scheduling of the window-level query: WIN_RR, WIN_FB, and WIN_FB with MERGE.

    window_directory.py   the window directory: pending results of each open window (WD of paper 5, Algorithms 2 and 3)
    events.py             input events and output instructions
    round_robin.py        WIN_RR: windows to workers in turn
    feedback.py           WIN_FB: workers report when they are ready; MERGE: results are merged while windows are busy
    partitions.py         numbers of partitions of panes: announced by the PLQ, counted by the WLQ, under scaling

Each scheduler is a state machine: it receives an event and returns instructions. It reads no clock and sends nothing.
"""

from __future__ import annotations

from skypane.control.scheduling.events import Feedback, Merge, PaneResult, RunTask, Scheduler, WinUpdate
from skypane.control.scheduling.feedback import WinFb, WinFbMerge
from skypane.control.scheduling.round_robin import WinRr
from skypane.types import ConfigError
from skypane.windows import Windows

__all__ = ["SCHEDULERS", "Feedback", "Merge", "PaneResult", "RunTask", "Scheduler", "WinUpdate", "scheduler"]

SCHEDULERS: dict[str, type[Scheduler]] = {
    "WIN_RR": WinRr,
    "WIN_FB": WinFb,
    "WIN_FB_MERGE": WinFbMerge,
}


def scheduler(name: str, windows: Windows, workers: int, first_pane: int | None = None) -> Scheduler:
    """Return a new scheduler of this name; see Scheduler for the other arguments."""
    if name not in SCHEDULERS:
        raise ConfigError(f"scheduling must be one of {', '.join(SCHEDULERS)}, got {name!r}")
    return SCHEDULERS[name](windows, workers, first_pane)
