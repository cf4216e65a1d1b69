"""Where windows are answered, and where a front takes its rows: in the driver, which has no job to start, or on workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.law import Decision, Stateless, StatelessLaw


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
    """Where windows are answered, in how many runs of consecutive ones; or a front takes rows, in how many shards."""

    where: Literal["driver", "spark"]
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Placement(StatelessLaw[None, DueWindows, Place]):
    """The law: windows are answered where they are sooner done. It needs no state: the batch tells all it goes by."""

    costs: Costs = DEFAULT_COSTS

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


@dataclass(frozen=True, slots=True)
class DueRows:
    """The rows that a batch brings to a front.

    coming   how many; stored: how many the front has
    workers  that could have a shard of it each
    grouped  whether there is a front for each group, so that a row meets those of its own group only
    """

    coming: int
    stored: int
    workers: int
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class FrontPlacement(StatelessLaw[None, DueRows, Place]):
    """The law: a front takes rows where they are sooner compared.

    A row that comes meets those stored, and on average half of the rows that have come before it and stay: they replace
    others, so there are at most as many as were stored.

    Shards divide the pairs; each takes all the rows that come, and all rows have to be sent. Of a front for each group a shard takes
    only the rows of its own groups, whose number and sizes are not looked at.
    """

    costs: Costs = DEFAULT_COSTS

    def decide(self, state: Stateless, known: DueRows) -> tuple[Stateless, Decision[Place]]:
        costs, shards = self.costs, max(1, known.workers)
        taking, comparing = 0.0, known.coming * costs.group_per_row
        if not known.grouped:
            taking = known.coming * costs.front_per_row
            met = known.stored + min(known.coming, known.stored) / 2
            comparing = known.coming * met * costs.front_per_pair
        moving = costs.job + (known.coming + known.stored) * costs.shard_per_row
        alone, together = taking + comparing, moving + taking + comparing / shards
        because = (
            f"{known.coming} rows meet {known.stored} stored: {alone * 1e3:.0f} ms alone, "
            f"{together * 1e3:.0f} ms in {shards} shards"
        )
        place = Place("spark", shards) if together < alone else Place("driver")
        return state, Decision("placement", place, because, {"alone": alone, "together": together})
