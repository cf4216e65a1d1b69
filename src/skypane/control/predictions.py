"""Predict the seconds of the next batch, for rows that stay where they are read and for rows that are routed.

    lift       rows of the busiest worker x seconds to lift a row
    exchange   fixed, and for each row; nothing for rows that stay
    merge      rows that are left of the panes' partitions x seconds to merge one

n rows leave n^growth in a partial, so a pane of n rows in p partitions leaves p (n / p)^growth = p^(1 - growth) n^growth.
The seconds of a row are those of the last batch whose rows stayed; the panes, and their rows, are the expected ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import NamedTuple, Self

from skypane.control.costs import Costs
from skypane.control.splitting.routing import Routing
from skypane.kernels.elementary import power
from skypane.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class SourceSpread:
    """Distribution of the rows of one batch without an exchange over the source's partitions.

    busy            lifting seconds of each task
    pane_rows       rows of each distinct pane
    partials        (pane, task) pairs: as many as panes if no pane is divided
    merge_seconds   duration of the window-level query
    workers         tasks that would share the work after an exchange
    """

    row_count: int
    busy: tuple[float, ...]
    pane_rows: tuple[int, ...]
    partials: int
    merge_seconds: float
    workers: int

    @property
    def partitions(self) -> float:
        """Partitions of a pane, on average."""
        return self.partials / len(self.pane_rows)


@dataclass(frozen=True, slots=True)
class SourceFigures(JsonState):
    """Figures of the source and of the cost of its rows, from a batch without an exchange.

    read         rows read for each row of a pane: more than one if rows are rejected
    row_seconds  seconds to lift a row of a pane
    longest      seconds until all tasks were through, as a share of the busy seconds of all: 1 for a single task
    partitions   partitions of a pane, on average
    merging      seconds to merge a row that is left of a partition (see `left`)
    """

    read: float
    row_seconds: float
    longest: float
    partitions: float
    merging: float

    @classmethod
    def of(cls, spread: SourceSpread, costs: Costs, growth: float) -> Self:
        """Return the figures of a batch with rows of at least one pane; the fixed cost of a window merges nothing."""
        rows, busy = sum(spread.pane_rows), sum(spread.busy)
        merging = max(0.0, spread.merge_seconds - len(spread.pane_rows) * costs.window)
        return cls(
            read=spread.row_count / rows,
            row_seconds=busy / rows,
            longest=finished(spread.busy, spread.workers) / busy if busy else 1.0,
            partitions=spread.partitions,
            merging=merging / left(spread.pane_rows, [spread.partitions] * len(spread.pane_rows), growth),
        )


@dataclass(frozen=True, slots=True)
class SplittingOption:
    """The next batch as a splitting policy would route it.

    name        of the policy
    busiest     rows of the busiest worker
    partitions  of each expected pane, in the order of the expected rows
    """

    name: str
    busiest: int
    partitions: tuple[int, ...]

    @classmethod
    def of(cls, name: str, routing: Routing, rows: Mapping[int, int]) -> Self:
        """Return the option of a routing for these expected rows by pane."""
        partitions = tuple(routing.partitions(pane, count) for pane, count in rows.items())
        return cls(name, max(routing.rows_by_worker(rows)), partitions)


@dataclass(frozen=True, slots=True)
class ExpectedBatch:
    """The rows expected of the next batch, by pane; its workers; and how splitting policies would route it."""

    rows: Mapping[int, int]
    workers: int
    options: tuple[SplittingOption, ...] = ()


class BatchSeconds(NamedTuple):
    """The predicted seconds of a batch."""

    lift: float
    exchange: float
    merge: float

    @property
    def total(self) -> float:
        return sum(self)

    def __str__(self) -> str:
        """Return the seconds in words, in milliseconds."""
        exchange = f"exchange {self.exchange * 1e3:.0f}, " if self.exchange else ""
        return f"{self.total * 1e3:.0f} ms (lift {self.lift * 1e3:.0f}, {exchange}merge {self.merge * 1e3:.0f})"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The seconds of the next batch, for each way that its rows may take.

    as_read    rows stay where they are read
    best_case  rows are exchanged, panes stay whole, and all workers get as many rows: no policy is faster
    routed     by each policy that was considered, in their order
    """

    as_read: BatchSeconds
    best_case: BatchSeconds
    routed: Mapping[str, BatchSeconds] = field(default_factory=dict)

    @property
    def fastest(self) -> str:
        """The fastest policy that was considered; of equal ones the first."""
        return min(self.routed, key=lambda name: self.routed[name].total)

    @property
    def seconds(self) -> BatchSeconds:
        """The seconds of the fastest policy, or of the best case if none was considered."""
        return self.routed[self.fastest] if self.routed else self.best_case

    @property
    def pays(self) -> bool:
        return self.seconds.total < self.as_read.total

    @property
    def saving(self) -> float:
        """The seconds that the fastest exchange would save if it cost nothing."""
        return self.as_read.total - (self.seconds.total - self.seconds.exchange)


def predict(source: SourceFigures, batch: ExpectedBatch, costs: Costs, growth: float) -> Prediction:
    """Return the predicted seconds of the expected batch."""
    counts = list(batch.rows.values())
    total = sum(counts)
    exchange = costs.exchanging(round(total * source.read))

    def seconds(rows: float, partitions: Sequence[float], exchange: float) -> BatchSeconds:
        return BatchSeconds(rows * source.row_seconds, exchange, left(counts, partitions, growth) * source.merging)

    as_read = [min(source.partitions, count) for count in counts]
    return Prediction(
        seconds(total * source.longest, as_read, 0.0),
        seconds(total / batch.workers, [1.0] * len(counts), exchange),
        {option.name: seconds(option.busiest, option.partitions, exchange) for option in batch.options},
    )


def left(pane_rows: Sequence[int], partitions: Sequence[float], growth: float) -> float:
    """Return the rows that are left of all panes to be merged, up to a factor that depends on the query."""
    return math.fsum(power(partitions, 1 - growth) * power(pane_rows, growth))


def finished(busy: Iterable[float], workers: int) -> float:
    """Return the seconds after which tasks are through, of which each begins, in turn, on the first free worker."""
    free = [0.0] * workers
    heapify(free)
    for seconds in busy:
        heapreplace(free, free[0] + seconds)
    return max(free)
