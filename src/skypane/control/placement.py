"""Where windows are answered, and where a front takes its rows: in the driver, which has no job to start, or on workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    keys        rows of the largest partial, if workers may share a window by its keys; else 0
    threads     whether the workers are threads on the driver's cores, so that it may do their tasks in threads of its own
    """

    windows: int
    row_count: int
    overlap: int
    workers: int
    keys: int = 0
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where windows are answered, in how many runs of consecutive ones; or a front takes rows, in how many shards.

    where  in the driver, in tasks that are threads of it, or in tasks of one of Spark's jobs
    parts  into which each run is divided by the keys of its windows
    """

    where: Literal["driver", "threads", "spark"]
    runs: int = 1
    parts: int = 1

    @property
    def tasks(self) -> int:
        """How many workers have something to do."""
        return self.runs * self.parts


DIVIDING = 0.15
"""What a row of a partial costs whose keys workers divide, as a part of merging it: each worker looks at all of them."""
MANY_KEYS = 65_536
"""From so many keys on, all windows are divided by keys: smaller tables fit caches better, and what is merged for a window
serves the next one, where each run of windows begins anew (bench/division.py)."""
COMPARED_ONCE = 2
"""What it costs to compare a row once for all its windows, with what comes before and after it, in merges."""
THREADS = 0.02
"""Seconds that tasks in threads of the driver take beside their work: they begin anew, and answers go through files."""


@dataclass(frozen=True, slots=True)
class Placement(StatelessLaw[None, DueWindows, Place]):
    """The law: windows are answered where they are sooner done. It needs no state: the batch tells all it goes by.

    Workers take runs of windows; where there are fewer windows than workers, or very many keys, they share windows by keys.
    """

    costs: Costs = DEFAULT_COSTS

    def decide(self, state: Stateless, known: DueWindows) -> tuple[Stateless, Decision[Place]]:
        rows_merged = known.row_count * min(known.overlap, 3)
        alone = known.windows * self.costs.window + rows_merged * self.costs.window_per_row
        shared = _shared(known)
        dividing = known.row_count * self.costs.window_per_row * DIVIDING if shared.parts > 1 else 0.0
        together = self.costs.job + alone / shared.tasks + dividing
        # What a window costs whatever its rows is Python's, and threads take turns at it.
        threads = THREADS + known.windows * self.costs.window + rows_merged * self.costs.window_per_row / shared.tasks
        in_threads = known.threads and shared.parts == 1 and threads < together
        together = threads if in_threads else together
        by_keys = f", each by keys in {shared.parts} parts" if shared.parts > 1 else ""
        because = (
            f"{known.windows} windows of {known.row_count} rows: {alone * 1e3:.0f} ms alone, "
            f"{together * 1e3:.0f} ms in {shared.runs} runs{by_keys}{', in threads' if in_threads else ''}"
        )
        place = Place("driver") if together >= alone else replace(shared, where="threads") if in_threads else shared
        return state, Decision("placement", place, because, {"alone": alone, "together": together})


def _shared(known: DueWindows) -> Place:
    """Return how workers would share the windows."""
    if known.windows and known.keys >= MANY_KEYS:
        return Place("spark", 1, known.workers)
    runs = max(1, min(known.workers, known.windows))
    return Place("spark", runs, known.workers // runs if known.windows and known.keys else 1)


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
