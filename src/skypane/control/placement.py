"""Where the window-level query runs: in the driver, which has no job to start, or on the workers."""

from __future__ import annotations

from dataclasses import dataclass

from skypane.control.costs import DEFAULT_COSTS, Costs


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision and its reason; `runs` is into how many runs of consecutive windows the work is cut."""

    where: str
    runs: int
    because: str


def place(windows: int, rows: int, overlap: int, workers: int, costs: Costs = DEFAULT_COSTS) -> Placement:
    """Decide where `windows` windows are answered.

    rows      in the partials of their panes, each pane counted once
    overlap   windows that hold a pane; beyond three, shared merges keep the work from growing with it
    workers   that could take a run each
    """
    alone = windows * costs.window + rows * min(overlap, 3) * costs.window_per_row
    runs = max(1, min(workers, windows))
    together = costs.job + alone / runs
    where = "spark" if together < alone else "driver"
    because = f"{windows} windows of {rows} rows: {alone * 1e3:.0f} ms alone, {together * 1e3:.0f} ms in {runs} runs"
    return Placement(where, runs if where == "spark" else 1, because)
