"""Lateness of recent rows: the rows that each slack would have dropped, with decaying weights and bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt, prod
from typing import Any, Self

import numpy as np

from skypane.kernels.elementary import power
from skypane.types import CheckpointError, FloatArray, IntArray, Micros

_PER_OCTAVE = 8
_OCTAVES = 63
#: Weights below this count as zero: one row is forgotten after ten half-lives.
_FORGOTTEN = 1e-3
#: Number of spreads that are added to the expected drops of a slack.
_CARE = 1.0
#: Blocks in a half-life.
_BLOCKS = 32
#: Least number of rows that the share must amount to before a slack is returned.
ENOUGH = 10
_ARRAYS = ("dropped", "squares", "block")
_NOTHING: FloatArray = np.empty(0)
_NOTHING.flags.writeable = False


def _edges() -> IntArray:
    steps = {_eighth_root(1 << eighths) for eighths in range(_OCTAVES * _PER_OCTAVE)}
    edges: IntArray = np.array([0, *sorted(steps), np.iinfo(np.int64).max], np.int64)
    edges.flags.writeable = False
    return edges


def _eighth_root(number: int) -> int:
    """Return the eighth root, rounded exactly to the nearest integer."""
    root = isqrt(isqrt(isqrt(number)))
    between = 2 * root + 1  # twice the midpoint to the next integer
    return root + int(prod([between] * _PER_OCTAVE) <= number << _PER_OCTAVE)


def _nothing() -> FloatArray:
    return _NOTHING


#: The slacks that are distinguished, in microseconds: 0, then steps of 9 % up to the largest integer.
EDGES: IntArray = _edges()


@dataclass(frozen=True, eq=False)
class RecentDistances:
    """Rows by distance; the weight of old rows is halved with every half-life of rows.

    A row's distance is how far the end of its pane lies behind the newest time before its batch: with slack K the row
    is dropped if and only if its distance is at least K. Rows of panes that end after the newest time have no distance.
    """

    #: For each slack of EDGES, the weight of the rows that it would have dropped; trailing zeros are cut off.
    dropped: FloatArray = field(default_factory=_nothing)
    #: The same as a sum of squares over blocks of rows, since late rows come in bursts, whose number varies.
    squares: FloatArray = field(default_factory=_nothing)
    #: The incomplete block: the rows that each slack would have dropped of it, and its rows.
    block: FloatArray = field(default_factory=_nothing)
    block_rows: int = 0
    #: Weight of all rows, including those without a distance.
    total: float = 0.0
    #: Event time in which these rows came, with the same weights (microseconds).
    span: float = 0.0

    def add(self, distance: IntArray, rows: IntArray, moved: Micros, half_life: float) -> Self:
        """Return the memory after `rows` more rows at each `distance` (microseconds; negative: no distance).

        `moved` is how far the newest time moved with these rows; `half_life` is a number of rows.
        """
        return self.add_late(late_by_slack(distance, rows), int(rows.sum()), moved, half_life)

    def add_late(self, fresh: FloatArray, count: int, moved: Micros, half_life: float) -> Self:
        """Return the memory after `count` more rows; `fresh`: for each slack of EDGES, the late rows it would have dropped."""
        keep = float(power(0.5, count / half_life))
        dropped = padded_sum(self.dropped * keep, fresh)
        squares, block, block_rows = self.squares * keep, padded_sum(self.block, fresh), self.block_rows + count
        if block_rows >= half_life / _BLOCKS:
            squares, block, block_rows = padded_sum(squares, block * block), _nothing(), 0
        total, span = self.total * keep + count, self.span * keep + moved
        return type(self)(_trimmed(dropped), _trimmed(squares), _trimmed(block), block_rows, total, span)

    def rows_in(self, span: Micros) -> float:
        """Return the rows that come, at the recent rate, while the newest time moves by `span`; 0 if it is unknown."""
        return self.total * span / self.span if self.span else 0.0

    def slack_for(
        self, share: float, watched: Micros, pane: Micros, care: float = 0.0, enough: float = ENOUGH
    ) -> Micros | None:
        """Return the smallest slack that would drop at most `share` of the rows, or None if that is not `enough` rows.

        `watched` is the length of event time over which the stream has been observed. The rows that a slack drops of a
        pane come over a cycle, the pane and the slack behind it. So a slack is known after one cycle, and the expected
        drops are raised by one cycle that may be missing, and by the spread of the blocks, because late rows come in
        bursts. `care`, from 0 to 1, moves the result from the slack interpolated between two edges (0) to the upper
        edge (1), which is known to suffice.
        """
        budget = share * self.total
        if budget < enough:
            return None
        edges = EDGES[: len(self.dropped) + 1]
        cycles = watched / (float(pane) + edges)
        spread = np.sqrt(padded_sum(self.squares, self.block * self.block))
        expected = np.append(self.dropped, 0.0) * (1 + 1 / np.maximum(cycles, 1))
        expected[: len(spread)] += _CARE * spread[: len(expected)]
        affordable = (expected <= budget) & (cycles >= 1)
        at = int(np.argmax(affordable))
        if not affordable[at]:
            return None
        if at <= 1 or expected[at - 1] <= budget:  # the slack before is affordable too, but not known yet
            return int(edges[at])
        between = (expected[at - 1] - budget) / (expected[at - 1] - expected[at])
        between += (1 - between) * care
        return int(edges[at - 1] + between * (edges[at] - edges[at - 1]))

    def share_dropped_by(self, slack: Micros) -> float:
        """Return the share of the rows that `slack` would have dropped, by the edge at or below it; 0 if no row is known.

        A window with late rows may be known before any window has passed.
        """
        at = int(np.searchsorted(EDGES, slack, side="right")) - 1
        return float(self.dropped[at]) / self.total if self.total and at < len(self.dropped) else 0.0

    def snapshot(self) -> dict[str, Any]:
        """Return the value as a JSON object."""
        return {name: _plain(value) for name, value in vars(self).items()}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the value that snapshot() wrote."""
        try:
            dropped, squares, block = (_fixed(np.array(snapshot[name], np.float64)) for name in _ARRAYS)
            numbers = int(snapshot["block_rows"]), float(snapshot["total"]), float(snapshot["span"])
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"recent distances cannot be read from {snapshot!r}") from cause
        return cls(dropped, squares, block, *numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecentDistances) and self.snapshot() == other.snapshot()

    __hash__ = None  # type: ignore[assignment]


def bins_of(distance: IntArray) -> IntArray:
    """Return for each distance the index in EDGES of the largest slack up to it; -1: it is negative."""
    bins: IntArray = np.searchsorted(EDGES[:-1], distance, side="right") - 1
    return bins


def late_by_slack(distance: IntArray, rows: IntArray) -> FloatArray:
    """Return for each slack of EDGES how many of the `rows` at each `distance` it would have dropped."""
    has_one = distance >= 0
    late: FloatArray = np.bincount(bins_of(distance[has_one]), weights=rows[has_one])[::-1].cumsum()[::-1]
    return late


def _plain(value: FloatArray | float) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _fixed(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def padded_sum(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the sum of two arrays of which the shorter one is padded with zeros."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


def _trimmed(weights: FloatArray) -> FloatArray:
    """Return the descending weights without forgotten ones, rounded to keep the ledger small."""
    known = len(weights) - int(np.searchsorted(weights[::-1], _FORGOTTEN))
    return _fixed(np.round(weights[:known], 3))
