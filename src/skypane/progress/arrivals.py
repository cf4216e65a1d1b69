"""What one micro-batch tells a progress policy: rows, oldest and newest time of each pane, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skypane.types import BoolArray, IntArray, Micros

_COLUMNS = ("pane_start", "pane_end", "rows", "oldest", "newest")


@dataclass(frozen=True, eq=False)
class Arrivals:
    """One batch, summed up by pane: equal-length int64 arrays in ascending order of pane_start, one entry per pane.

    Late panes are in it, rows quarantined for a reason other than their time are not. Times are event time in
    microseconds; `oldest` and `newest` are exact, and lie in [pane_start, pane_end).
    """

    pane_start: IntArray
    pane_end: IntArray
    rows: IntArray
    oldest: IntArray
    newest: IntArray
    #: What upto() put aside: a bound has to remember how many rows stood beyond it.
    beyond: Arrivals | None = field(default=None, repr=False)

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
    def of_times(cls, times: ArrayLike, pane: Micros, offset: Micros = 0) -> Self:
        """Sum up the event times of a batch's rows, for panes of length `pane`."""
        ordered = np.sort(np.asarray(times, np.int64))
        numbers, first, rows = np.unique((ordered - offset) // pane, return_index=True, return_counts=True)
        start = offset + numbers * pane
        return cls(start, start + pane, rows, ordered[first], ordered[first + rows - 1])

    def __len__(self) -> int:
        """Return the number of panes."""
        return len(self.rows)

    @property
    def total(self) -> int:
        """Rows in the batch, those put aside not counted."""
        return int(self.rows.sum())

    def late(self, punctuation: Micros | None) -> int:
        """Return how many rows belong to panes that `punctuation` has closed."""
        return 0 if punctuation is None else int(self.rows[self.pane_end <= punctuation].sum())

    def upto(self, limit: Micros | None) -> Arrivals:
        """Put aside the panes that start beyond `limit`, and take no time as newer than it.

        The panes put aside stay readable in `beyond`. Cutting twice at one limit is the same as cutting once.
        """
        if limit is None:
            return self
        keep = self.pane_start <= limit
        kept, beyond = self._only(keep), self.beyond
        if not keep.all():
            aside = self._only(~keep)
            beyond = aside if beyond is None else aside.union(beyond)
        oldest, newest = np.minimum(kept.oldest, limit), np.minimum(kept.newest, limit)
        return replace(kept, oldest=oldest, newest=newest, beyond=beyond)

    def whole(self) -> Arrivals:
        """Return the batch with what was put aside."""
        return self if self.beyond is None else replace(self, beyond=None).union(self.beyond)

    def union(self, other: Arrivals) -> Arrivals:
        """Return the panes of both; they must not share one."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _COLUMNS
        }
        return replace(self, **joined)

    def _only(self, mask: BoolArray) -> Arrivals:
        chosen: dict[str, Any] = {name: getattr(self, name)[mask] for name in _COLUMNS}
        return replace(self, beyond=None, **chosen)
