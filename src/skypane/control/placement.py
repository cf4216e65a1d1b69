"""Place the answering of windows, and the insertion of rows into a front: in the driver or on workers.

The driver saves the overhead of a Spark job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from skypane.control.control_policy import Decision, NoState, StatelessPolicy
from skypane.control.costs import DEFAULT_COSTS, Costs


@dataclass(frozen=True, slots=True)
class DueWindows:
    """The windows that a batch completes.

    windows     number of windows
    row_count   rows in the partials of their panes, each pane counted once
    overlap     windows that hold a pane; beyond three, shared merges keep the work from growing with it
    workers     workers, each of which may take a run of windows
    keys        rows of the largest partial, if workers may divide a window by its keys; else 0
    threads     whether the workers are threads on the driver's cores, so that the driver can run their tasks in threads
    """

    windows: int
    row_count: int
    overlap: int
    workers: int
    keys: int = 0
    threads: bool = False


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """Where windows are answered, or where a front takes rows.

    where  the driver, threads of the driver, or tasks of a Spark job
    runs   runs of consecutive windows; shards of a front
    parts  parts into which each run is divided by the keys of its windows
    """

    where: Literal["driver", "threads", "spark"]
    runs: int = 1
    parts: int = 1

    @property
    def tasks(self) -> int:
        """Number of workers that get work."""
        return self.runs * self.parts


DIVIDING = 0.15
"""Cost of a row of a partial divided by keys, as a part of merging it: each worker reads all rows."""
MANY_KEYS = 65_536
"""Least number of keys from which all windows are divided by keys: smaller tables fit caches better, and merges for a
window serve the next one, whereas each run of windows starts again (measure/bench/division.py)."""
COMPARED_ONCE = 2
"""Cost, in merges, of comparing a row for all its windows together with the rows before and after it."""
THREADS = 0.02
"""Overhead of tasks in threads of the driver, in seconds: each starts without state, and answers go through files."""


@dataclass(frozen=True, slots=True)
class Placement(StatelessPolicy[None, DueWindows, PlacementChoice]):
    """Answer windows where it takes less time; stateless, since the batch provides all that is needed.

    Workers take runs of windows; if there are fewer windows than workers, or very many keys, they divide windows by
    keys.
    """

    costs: Costs = DEFAULT_COSTS

    def decide(self, state: NoState, known: DueWindows) -> tuple[NoState, Decision[PlacementChoice]]:
        rows_merged = known.row_count * min(known.overlap, 3)
        alone = known.windows * self.costs.window + rows_merged * self.costs.window_per_row
        shared = _shared(known)
        dividing = known.row_count * self.costs.window_per_row * DIVIDING if shared.parts > 1 else 0.0
        together = self.costs.job + alone / shared.tasks + dividing
        # The fixed cost of a window is Python code, which threads run one at a time.
        threads = THREADS + known.windows * self.costs.window + rows_merged * self.costs.window_per_row / shared.tasks
        in_threads = known.threads and shared.parts == 1 and threads < together
        together = threads if in_threads else together
        by_keys = f", each by keys in {shared.parts} parts" if shared.parts > 1 else ""
        because = (
            f"{known.windows} windows of {known.row_count} rows: {alone * 1e3:.0f} ms alone, "
            f"{together * 1e3:.0f} ms in {shared.runs} runs{by_keys}{', in threads' if in_threads else ''}"
        )
        place = (
            PlacementChoice("driver")
            if together >= alone
            else replace(shared, where="threads")
            if in_threads
            else shared
        )
        return state, Decision("placement", place, because, {"alone": alone, "together": together})


def _shared(known: DueWindows) -> PlacementChoice:
    """Return how workers would divide the windows."""
    if known.windows and known.keys >= MANY_KEYS:
        return PlacementChoice("spark", 1, known.workers)
    runs = max(1, min(known.workers, known.windows))
    return PlacementChoice("spark", runs, known.workers // runs if known.windows and known.keys else 1)


@dataclass(frozen=True, slots=True)
class DueRows:
    """The rows of a batch for a front.

    coming   number of new rows
    stored   number of rows that the front stores
    workers  workers, each of which may have a shard of the front
    grouped  whether each group has its own front, so that a row is compared only with rows of its group
    """

    coming: int
    stored: int
    workers: int
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class FrontPlacement(StatelessPolicy[None, DueRows, PlacementChoice]):
    """Let a front take rows where comparing them takes less time.

    A new row is compared with the stored rows, and on average with half of the new rows before it that stay. Those
    replace stored ones, so they are at most as many as were stored.

    Shards divide the pairs; each shard takes all new rows, and all rows have to be sent. With a front for each group, a
    shard takes only the rows of its groups; the number and sizes of groups are not considered.
    """

    costs: Costs = DEFAULT_COSTS

    def decide(self, state: NoState, known: DueRows) -> tuple[NoState, Decision[PlacementChoice]]:
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
        place = PlacementChoice("spark", shards) if together < alone else PlacementChoice("driver")
        return state, Decision("placement", place, because, {"alone": alone, "together": together})
