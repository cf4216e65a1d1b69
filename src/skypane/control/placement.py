"""Where the window-level query runs: in the driver, which has no job to start, or on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.law import ControlLaw, Decision, Stateless


@dataclass(frozen=True, slots=True)
class DueWindows:
    """The windows that a batch completes.

    windows     how many
    row_count   rows in the partials of their panes, each pane counted once
    overlap     windows that hold a pane; beyond three, shared merges keep the work from growing with it
    workers     that could take a run of windows each
    """

    windows: int
    row_count: int
    overlap: int
    workers: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where windows are answered, and into how many runs of consecutive ones they are cut."""

    where: Literal["driver", "spark"]
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Placement(ControlLaw[Stateless, None, DueWindows, Place]):
    """The law: windows are answered where they are sooner done. It needs no state: the batch tells all it goes by."""

    State = Stateless
    costs: Costs = DEFAULT_COSTS

    def init(self) -> Stateless:
        return Stateless()

    def observe(self, state: Stateless, measured: None = None) -> Stateless:  # noqa: ARG002 - nothing is learnt
        return state

    def decide(self, state: Stateless, known: DueWindows) -> tuple[Stateless, Decision[Place]]:
        rows_merged = known.row_count * min(known.overlap, 3)
        alone = known.windows * self.costs.window + rows_merged * self.costs.window_per_row
        runs = max(1, min(known.workers, known.windows))
        together = self.costs.job + alone / runs
        because = (
            f"{known.windows} windows of {known.row_count} rows: {alone * 1e3:.0f} ms alone, "
            f"{together * 1e3:.0f} ms in {runs} runs"
        )
        place = Place("spark", runs) if together < alone else Place("driver")
        return state, Decision("placement", place, because, {"alone": alone, "together": together})
