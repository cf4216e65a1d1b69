"""Summary of a micro-batch for progress policies: rows, oldest and newest time by pane, and counts by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skypane.types import BoolArray, IntArray, Micros
from skypane.windows import Windows

SLOTS: Final = 16
"""Parts into which the rows of a batch are divided in the order of reading."""
_COLUMNS = ("pane_start", "pane_end", "rows", "oldest", "newest")


class SourceCount(NamedTuple):
    """Rows of one source in a batch, the late ones among them, and its newest time (microseconds)."""

    rows: int
    late: int
    newest: Micros

    def merge(self, other: SourceCount) -> SourceCount:
        """Return the sum of two counts of the same source."""
        return SourceCount(self.rows + other.rows, self.late + other.late, max(self.newest, other.newest))


class UnitEnd(NamedTuple):
    """The time that a partition or an input has reached in a batch (microseconds), and its rows."""

    newest: Micros
    rows: int


@dataclass(frozen=True, eq=False)
class PaneArrivals:
    """One batch by pane: int64 arrays of equal length in ascending order of pane_start, one entry for each pane.

    Late panes are included; rows quarantined for a reason other than their time are not. Times are event time in
    microseconds; `oldest` and `newest` are exact and lie in [pane_start, pane_end).
    """

    pane_start: IntArray
    pane_end: IntArray
    rows: IntArray
    oldest: IntArray
    newest: IntArray
    #: The same rows by source, if the job names a source column; rows in the far future are included.
    sources: Mapping[str, SourceCount] = field(default_factory=dict)
    #: Newest time by the source's own clock, of the sources whose rows were corrected or quarantined by ClockRules.
    shown: Mapping[str, Micros] = field(default_factory=dict)
    #: When the batch arrived, by a clock that a replay of the batch reads again; None if the policy does not need it.
    arrived: Micros | None = None
    #: Event time of the next row of the input that was farthest behind when the batch was planned, if the batch or the
    #: one before it left rows; None: it did not, or the source does not estimate it.
    waiting_since: Micros | None = None
    #: The windows that the panes are cut from; None: not known.
    windows: Windows | None = None
    #: The same rows in the order in which they were read; empty: they came at once; None: it is not known.
    runs: tuple[PaneRun, ...] | None = ()
    #: How far each of the source's partitions, or inputs, has come, if several were read side by side.
    ends: tuple[UnitEnd, ...] = ()

    def __post_init__(self) -> None:
        columns = {name: np.asarray(getattr(self, name), np.int64) for name in _COLUMNS}
        if len({column.shape for column in columns.values()}) != 1 or columns["rows"].ndim != 1:
            shapes = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
            raise ValueError(f"arrivals need one-dimensional arrays of one length, got {shapes}")
        start = columns["pane_start"]
        ascending = bool((start[1:] >= start[:-1]).all())
        order = slice(None) if ascending else np.argsort(start, kind="stable")
        for name, column in columns.items():
            object.__setattr__(self, name, column[order])

    @classmethod
    def none(cls) -> Self:
        """Return a batch without rows."""
        empty = np.empty(0, np.int64)
        return cls(empty, empty, empty, empty, empty)

    @classmethod
    def of_times(cls, times: ArrayLike, windows: Windows) -> Self:
        """Return the arrivals of a batch whose rows came in this order, with these event times, by the panes of `windows`."""
        read = np.asarray(times, np.int64)
        if not (np.diff(read) < 0).any():
            return cls.at_once(read, windows)
        parts = (read[part] for part in parts_of(len(read), SLOTS))
        runs = (PaneRun(cls.at_once(part, windows), behind_before(part)) for part in parts)
        return replace(cls.at_once(read, windows), runs=tuple(runs))

    @classmethod
    def at_once(cls, times: ArrayLike, windows: Windows) -> Self:
        """Return the arrivals of a batch whose rows have these event times, and no order."""
        ordered = np.sort(np.asarray(times, np.int64))
        panes, first, rows = np.unique(windows.panes_at(ordered), return_index=True, return_counts=True)
        starts, ends = windows.pane_start(panes), windows.pane_end(panes)
        return cls(starts, ends, rows, ordered[first], ordered[first + rows - 1], windows=windows)

    def __len__(self) -> int:
        """Return the number of panes."""
        return len(self.rows)

    @property
    def total(self) -> int:
        """Number of rows in the batch."""
        return int(self.rows.sum())

    def lag(self, share: float) -> Micros:
        """Return how far the slowest partition is behind the fastest, except for those with at most this share of the rows."""
        left = share * sum(end.rows for end in self.ends)
        for end in sorted(self.ends):
            left -= end.rows
            if left < 0:
                return max(self.ends).newest - end.newest
        return 0

    def late(self, punctuation: Micros | None) -> int:
        """Return how many rows belong to panes that `punctuation` has closed."""
        return 0 if punctuation is None else int(self.rows[self.pane_end <= punctuation].sum())

    def upto(self, limit: Micros | None) -> PaneArrivals:
        """Return the arrivals without panes that start beyond `limit`, and with times cut to it."""
        if limit is None or not len(self) or self.newest.max() <= limit:
            return self
        kept = self.only(self.pane_start <= limit)
        kept = replace(kept, oldest=np.minimum(kept.oldest, limit), newest=np.minimum(kept.newest, limit))
        if self.runs is None:
            return kept
        runs = (replace(run, arrivals=run.arrivals.upto(limit)) for run in self.runs)
        return replace(kept, runs=tuple(run for run in runs if len(run.arrivals)))

    def only(self, mask: BoolArray) -> PaneArrivals:
        """Return the panes for which `mask` is true."""
        chosen: dict[str, Any] = {name: getattr(self, name)[mask] for name in _COLUMNS}
        return replace(self, **chosen)

    def followed_by(self, other: PaneArrivals) -> PaneArrivals:
        """Return the panes of both, of which the others came last, with the sources of this batch."""
        return replace(self.union(other), runs=(*self.runs, PaneRun(other)) if self.runs else self.runs)

    def union(self, other: PaneArrivals) -> PaneArrivals:
        """Return the panes of both, with the sources of this batch."""
        if not len(other):
            return self
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _COLUMNS
        }
        return replace(self, **joined).merged()

    def merged(self) -> PaneArrivals:
        """Return the same with one entry for each pane."""
        if not len(self):
            return self
        first = np.flatnonzero(np.diff(self.pane_start, prepend=self.pane_start[0] - 1))
        return replace(
            self,
            pane_start=self.pane_start[first],
            pane_end=self.pane_end[first],
            rows=np.add.reduceat(self.rows, first),
            oldest=np.minimum.reduceat(self.oldest, first),
            newest=np.maximum.reduceat(self.newest, first),
        )


@dataclass(frozen=True, eq=False)
class PaneRun:
    """Rows of a batch that were read one after the other, after those of the run before it.

    arrivals   the rows by pane, at least one
    delay      how far a row was behind the newest one before it in the run, at most, in microseconds; None: not known
    before     the newest time of the stream before the run; None: it has none, or no policy has measured it
    newest     that after the run; None: no policy has measured it
    """

    arrivals: PaneArrivals
    delay: Micros | None = 0
    before: Micros | None = None
    newest: Micros | None = None

    @property
    def reached(self) -> Micros:
        """The newest time of the stream after the run, which a policy has measured."""
        if self.newest is None:
            raise ValueError("no policy has measured the run")
        return self.newest


def parts_of(rows: int, most: int) -> list[slice]:
    """Return at most `most` parts of about equal length that so many rows are divided into, in their order."""
    size = max(1, -(-rows // most))
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


def behind_before(times: IntArray) -> Micros:
    """Return how far a row was behind the newest one before it, at most; rows came in this order."""
    return int((np.maximum.accumulate(times) - times).max())
