"""Who does the work of the window-level query, and when: WIN_RR, WIN_FB, WIN_FB with MERGE.

    directory.py      the window directory: what each open window waits for (WD of paper 5, Algorithms 2 and 3)
    messages.py       events in, instructions out
    round_robin.py    WIN_RR: windows to workers in turn
    feedback.py       WIN_FB: workers say when they are ready; with MERGE, partial results are merged while windows are busy
    partitions.py     how many partitions a pane has, told to whom, counted by whom, while workers come and go

Each is a state machine: it is told an event, and answers with what is to be done. It reads no clock and sends nothing.
"""

from __future__ import annotations

from skypane.control.scheduling.feedback import WinFb, WinFbMerge
from skypane.control.scheduling.messages import Feedback, Merge, PaneResult, Run, Scheduler, WinUpdate
from skypane.control.scheduling.round_robin import WinRr
from skypane.types import ConfigError
from skypane.windows import Windows

__all__ = ["SCHEDULERS", "Feedback", "Merge", "PaneResult", "Run", "Scheduler", "WinUpdate", "scheduler"]

SCHEDULERS: dict[str, type[Scheduler]] = {
    "WIN_RR": WinRr,
    "WIN_FB": WinFb,
    "WIN_FB_MERGE": WinFbMerge,
}


def scheduler(name: str, windows: Windows, workers: int, first_pane: int | None = None) -> Scheduler:
    """Return a scheduler by its name; see Scheduler for the rest."""
    if name not in SCHEDULERS:
        raise ConfigError(f"scheduling must be one of {', '.join(SCHEDULERS)}, got {name!r}")
    return SCHEDULERS[name](windows, workers, first_pane)
