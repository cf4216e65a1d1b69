"""Where the window-level query runs: in the driver, which has no job to start, or on the workers."""

from __future__ import annotations

from dataclasses import dataclass

DRIVER_ROWS = 400_000
"""Rows to merge from which a job with a Python stage (0.1 s to start) is sooner done than the driver alone."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision and its reason; `runs` is into how many runs of consecutive windows the work is cut."""

    where: str
    runs: int
    because: str


def place(windows: int, rows: int, workers: int) -> Placement:
    """Decide for `windows` windows whose panes hold `rows` rows in all, a pane counted once a window."""
    runs = max(1, min(workers, windows))
    if rows < DRIVER_ROWS:
        return Placement("driver", 1, f"{rows} rows to merge are fewer than {DRIVER_ROWS}")
    return Placement("spark", runs, f"{rows} rows to merge in {runs} runs")
