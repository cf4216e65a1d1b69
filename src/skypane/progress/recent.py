"""How late rows have been of late: a histogram that forgets, of bounded size, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skypane.types import CheckpointError, FloatArray, IntArray, Micros

_PER_OCTAVE = 8
_OCTAVES = 50
#: A bin with less weight than this is empty: one row is forgotten after ten half-lives.
_FORGOTTEN = 1e-3


def _edges() -> IntArray:
    steps = np.exp2(np.arange(_OCTAVES * _PER_OCTAVE) / _PER_OCTAVE)
    edges: IntArray = np.unique(np.concatenate([[0], np.rint(steps).astype(np.int64)]))
    edges.flags.writeable = False
    return edges


#: Lower edges of the bins, in microseconds: 0, then steps of 9 % up to 32 years; the last bin has no upper edge.
EDGES: IntArray = _edges()


@dataclass(frozen=True)
class RecentDistances:
    """Rows by distance; the weight of old rows is halved whenever a half-life of rows has come.

    A row's distance is how far the end of its pane lay behind the newest time before its batch: with slack K the row
    is dropped exactly if its distance is at least K. So K is only ever an edge, and what K would have dropped is the
    weight of the bins from K's on, with no error of rounding. Rows whose pane was still ahead have no distance.
    """

    #: Weight of the rows in each bin of EDGES; bins after the last one with any weight are left out.
    late: tuple[float, ...] = ()
    #: Weight of all rows, those without a distance too.
    total: float = 0.0
    #: Event time in which these rows came, with the same weights (microseconds).
    span: float = 0.0

    def add(self, distance: IntArray, rows: IntArray, span: Micros, half_life: float) -> Self:
        """Return the histogram after `rows` rows at each `distance` (microseconds, below zero: none).

        `span` is how far the newest time moved with them, `half_life` a number of rows.
        """
        count = float(rows.sum())
        keep = 0.5 ** (count / half_life)
        has_one = distance >= 0
        bins = np.searchsorted(EDGES, distance[has_one], side="right") - 1
        fresh = np.bincount(bins, weights=rows[has_one], minlength=len(self.late))
        late = fresh.astype(np.float64)  # of no bins at all, bincount makes integers
        late[: len(self.late)] += np.asarray(self.late, np.float64) * keep
        late[late < _FORGOTTEN] = 0.0
        weights = tuple(np.trim_zeros(late, "b").tolist())
        return type(self)(weights, self.total * keep + count, self.span * keep + span)

    def rows_in(self, span: Micros) -> float:
        """Return how many rows come, at the recent rate, while the newest time moves by `span`; 0 if none is known."""
        return self.total * span / self.span if self.span else 0.0

    def slack_for(self, share: float) -> Micros | None:
        """Return the smallest K that drops at most `share` of the rows, or None if too few are known to tell.

        One row more than was seen is counted beyond every K: n rows without a late one do not show that a share
        below 1/n is late.
        """
        affordable = np.append(self._beyond(), 0.0) + 1.0 <= share * self.total
        return _edge(int(np.argmax(affordable))) if affordable.any() else None

    def longest(self) -> Micros:
        """Return the smallest K that drops no row of those remembered."""
        return _edge(len(self.late))

    def _beyond(self) -> FloatArray:
        """Return, for each bin, the weight in it and in all bins after it."""
        return np.cumsum(np.asarray(self.late, np.float64)[::-1])[::-1]

    def snapshot(self) -> dict[str, Any]:
        """Return the histogram as a JSON object."""
        return {"late": list(self.late), "total": self.total, "span": self.span}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the histogram whose snapshot() this is."""
        try:
            late = tuple(float(weight) for weight in snapshot["late"])
            return cls(late, float(snapshot["total"]), float(snapshot["span"]))
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"recent distances cannot be read from {snapshot!r}") from cause


def _edge(index: int) -> Micros:
    return int(EDGES[min(index, len(EDGES) - 1)])
