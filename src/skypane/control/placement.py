"""Place the answering of windows, and the insertion of rows into a front: in the driver or on workers.

The driver saves the overhead of a Spark job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from skypane.control.costs import Costs
from skypane.policy import Decision

Place: TypeAlias = Literal["driver", "threads", "spark"]

SHARED_MERGES: Final = 3
"""Merges of a row beyond which more windows that hold it cost nothing: two stacks share them (operators/window_query)."""

FORM_LASTS: Final = 8
"""Batches over which the cost of another form of a front, or of the first merges of windows in the driver, is spread: a
stream's batches resemble those before them."""


@dataclass(frozen=True, slots=True)
class DueWindows:
    """The windows that a batch completes.

    windows     number of windows
    row_count   rows in the partials of their panes, each pane counted once
    overlap     windows that hold a pane
    workers     workers, each of which may take a run of windows
    keys        rows of the largest partial, if workers may divide a window by its keys; else 0
    compared_once
                whether each row is compared once, however many windows hold it
    threads     whether the workers are threads on the driver's cores, so that the driver can run their tasks in threads
    hot         share of the work on keys that one key has, as batches have shown; its part cannot be divided further
    fresh       rows of the panes that no window of the batches before holds, if the driver keeps merges; None: it keeps none
    unmerged    rows of the panes that the driver has to merge; None: those of all panes
    """

    windows: int
    row_count: int
    overlap: int
    workers: int
    keys: int = 0
    compared_once: bool = False
    threads: bool = False
    hot: float = 0.0
    fresh: int | None = None
    unmerged: int | None = None

    @property
    def alone_rows(self) -> float:
        """Rows that the driver merges in a batch like this one, with a part of those of a first one.

        Tasks start without merges. The driver still has those of the last batch; if others have answered that one, it
        has to catch up once.
        """
        if self.fresh is None:
            return self.row_count
        unmerged = self.row_count if self.unmerged is None else self.unmerged
        return self.fresh + (unmerged - self.fresh) / FORM_LASTS

    def evenly(self, place: PlacementChoice) -> float:
        """Return the number of equal tasks that would take as long as the longest of these."""
        hot = self.hot if place.parts > 1 else 0.0
        return place.runs / (hot + (1.0 - hot) / place.parts)


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """Where windows are answered, or where a front takes rows.

    where  the driver, threads of the driver, or tasks of a Spark job
    runs   runs of consecutive windows; shards of a front, in threads or tasks
    parts  parts into which each run is divided by the keys of its windows
    """

    where: Place
    runs: int = 1
    parts: int = 1

    @property
    def tasks(self) -> int:
        """Number of workers that get work."""
        return self.runs * self.parts


@dataclass(frozen=True, slots=True)
class DueRows:
    """The rows of a batch for a front.

    coming    number of new rows
    stored    number of rows that the front stores
    workers   workers, each of which may have a shard of the front
    grouped   whether each group has its own front, so that a row is compared only with rows of its group
    threads   threads of the driver, each of which may have a shard of the front that stays there
    resident  shards of the front that are there from the last batch; 0 if it is whole
    """

    coming: int
    stored: int
    workers: int
    grouped: bool = False
    threads: int = 0
    resident: int = 0


def place_windows(due: DueWindows, costs: Costs) -> Decision[PlacementChoice]:
    """Return where windows are answered sooner.

    Workers take runs of windows; if there are fewer windows than workers, or very many keys, they divide windows by
    keys.
    """
    shared, alone = _shared(due, costs), seconds_alone(due, costs)
    dividing = due.row_count * costs.divided_per_row if shared.parts > 1 else 0.0
    together = costs.job + seconds_of_tasks(due, costs) / due.evenly(shared) + dividing
    threads = costs.threads + seconds_in_threads(due, costs, due.evenly(shared)) + dividing
    if due.threads and threads < together:
        shared, together = replace(shared, where="threads"), threads
    by_keys = f", each by keys in {shared.parts} parts" if shared.parts > 1 else ""
    overhead = " in threads" if shared.where == "threads" else f", {costs.job * 1e3:.0f} ms of it for a job"
    because = (
        f"{due.windows} windows of {due.row_count} rows: {alone * 1e3:.0f} ms alone, "
        f"{together * 1e3:.0f} ms in {shared.runs} runs{by_keys}{overhead}"
    )
    return _decision(shared, because, alone, together)


def place_rows(due: DueRows, costs: Costs) -> Decision[PlacementChoice]:
    """Return where a front takes rows sooner.

    Shards divide the pairs; each shard takes all new rows. Those in threads stay where they are; all rows have to be
    sent to those of a job. A front that changes its form in the driver is indexed again, which a stay in the new form
    of a few batches must be worth. With a front for each group, a shard takes only the rows of its groups; the number
    and sizes of groups are not considered.
    """
    shards = max(1, due.workers)
    taking, comparing = _front_work(due, costs)
    alone = taking + comparing + _moving(due, costs, 0)
    together = costs.job + (due.coming + due.stored) * costs.shard_per_row + taking + comparing / shards
    figures, in_threads = {"alone": alone, "together": together}, ""
    if due.threads > 1:
        figures["threads"] = costs.shard_threads + seconds_in_threads(due, costs, due.threads)
        figures["threads"] += _moving(due, costs, due.threads)
        in_threads = f"{figures['threads'] * 1e3:.0f} ms in {due.threads} threads, "
    because = (
        f"{due.coming} rows meet {due.stored} stored: {alone * 1e3:.0f} ms alone, {in_threads}"
        f"{together * 1e3:.0f} ms in {shards} shards, {costs.job * 1e3:.0f} ms of it for a job"
    )
    if due.threads > 1 and figures["threads"] < min(alone, together):
        return Decision("placement", PlacementChoice("threads", due.threads), because, figures)
    place = PlacementChoice("spark", shards) if together < alone else PlacementChoice("driver")
    return Decision("placement", place, because, figures)


def seconds_alone(due: DueWindows | DueRows, costs: Costs) -> float:
    """Return the seconds that the driver needs alone."""
    if isinstance(due, DueRows):
        return sum(_front_work(due, costs))
    return due.windows * costs.window + _merging(due, due.alone_rows, costs)


def seconds_of_tasks(due: DueWindows | DueRows, costs: Costs) -> float:
    """Return the seconds that the tasks of a job need together."""
    if isinstance(due, DueRows):
        return sum(_front_work(due, costs))
    return due.windows * costs.window + _merging(due, due.row_count, costs)


def seconds_in_threads(due: DueWindows | DueRows, costs: Costs, tasks: float) -> float:
    """Return the seconds that threads of the driver work; the fixed cost is Python code, which runs one at a time."""
    if isinstance(due, DueRows):
        taking, comparing = _front_work(due, costs)
        return taking + comparing / tasks
    return due.windows * costs.window + _merging(due, due.row_count, costs) / tasks


def _decision(shared: PlacementChoice, because: str, alone: float, together: float) -> Decision[PlacementChoice]:
    place = shared if together < alone else PlacementChoice("driver")
    return Decision("placement", place, because, {"alone": alone, "together": together})


def _moving(due: DueRows, costs: Costs, shards: int) -> float:
    """Return a batch's part of the seconds in which a front in the driver gets another form, whole or in shards.

    A row that is indexed again costs no more than one that is sent to a shard.
    """
    return 0.0 if shards == due.resident else due.stored * costs.shard_per_row / FORM_LASTS


def _merging(due: DueWindows, rows: float, costs: Costs) -> float:
    """Return the seconds of the merges of so many rows."""
    per_row = min(due.overlap, SHARED_MERGES) * costs.window_per_row
    return rows * (min(per_row, costs.compared_per_row) if due.compared_once else per_row)


def _shared(due: DueWindows, costs: Costs) -> PlacementChoice:
    """Return how workers would divide the windows."""
    if due.windows and due.keys >= costs.many_keys:
        return PlacementChoice("spark", 1, due.workers)
    runs = max(1, min(due.workers, due.windows))
    return PlacementChoice("spark", runs, due.workers // runs if due.windows and due.keys else 1)


def _front_work(due: DueRows, costs: Costs) -> tuple[float, float]:
    """Return the seconds in which a front takes the new rows, and those in which it compares them.

    A new row is compared with the stored rows, and on average with half of the new rows before it that stay. Those
    replace stored ones, so they are at most as many as were stored.
    """
    if due.grouped:
        return 0.0, due.coming * costs.group_per_row
    met = due.stored + min(due.coming, due.stored) / 2
    return due.coming * costs.front_per_row, due.coming * met * costs.front_per_pair
