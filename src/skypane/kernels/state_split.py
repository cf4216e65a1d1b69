"""The split of states of a sliding window into parts that can be subtracted and parts that are stacked.

sliding_states.py describes both kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skypane.kernels import exact, keyed, sliding_states
from skypane.kernels.column_layout import frozen
from skypane.types import IntArray

Tops = tuple[tuple[int, int], ...]
"""The least and the largest top limb of each exact sum of states, in the order of the parts; -1 if all are zero."""


@dataclass(frozen=True)
class StateSplit:
    """The division of states into sums and stacked parts, with the number of columns of each."""

    #: (p, 3), the parts of the states as in keyed.py: way, first column, columns
    plan: IntArray
    #: for each exact sum, the larger of the two tops that fit; None if it is stacked
    grids: tuple[int | None, ...]
    sums: IntArray
    stacked: IntArray
    sums_width: int
    stacked_width: int

    @classmethod
    def of(cls, plan: IntArray, tops: Iterable[Tops]) -> StateSplit:
        """Return the split of states with parts `plan`, for panes whose sums have `tops`."""
        grids = _grids(plan, tops)
        left = iter(grids)
        sums: list[tuple[int, ...]] = []
        stacked: list[tuple[int, ...]] = []
        at = place = 0
        for way, source, columns in plan.tolist():
            top = next(left) if way == keyed.EXACT else 0
            if way == keyed.LEAST or top is None:
                stacked.append((way, place, columns, source))
                place += columns
            else:
                kept = sliding_states.GRID if way == keyed.EXACT else columns
                sums.append((way, at, kept, source, top))
                at += kept
        return cls(plan, grids, _table(sums, 5), _table(stacked, 4), at, place)

    def holds(self, tops: Tops) -> bool:
        """Return whether sums with these tops fit the split."""
        return all(
            grid is None or most < 0 or grid - 1 <= least <= most <= grid
            for grid, (least, most) in zip(self.grids, tops, strict=True)
        )

    def is_worse_than_of(self, tops: Iterable[Tops]) -> bool:
        """Return whether a sum is stacked that need not be, if `tops` are those of all panes."""
        return any(
            old is None and new is not None for old, new in zip(self.grids, _grids(self.plan, tops), strict=True)
        )

    @property
    def width(self) -> int:
        """The number of columns of the states."""
        return int(self.plan[-1, 1] + self.plan[-1, 2])

    def empty_stack(self, n: int) -> Any:
        """Return the stacked parts of n keys without rows, column-major, as answers are computed."""
        return np.asfortranarray(keyed.empty_states(n, self.stacked_width, self.stacked))


def tops_in(states: Any, plan: IntArray) -> Tops:
    """Return the tops of the exact sums of some states."""
    return tuple(sliding_states.tops_of(states, at) for way, at, _ in plan.tolist() if way == keyed.EXACT)


def _grids(plan: IntArray, several: Iterable[Tops]) -> tuple[int | None, ...]:
    none = tuple((-1, -1) for way in plan[:, 0].tolist() if way == keyed.EXACT)
    return tuple(_grid(ranges) for ranges in zip(none, *several, strict=True))


def _grid(ranges: Sequence[tuple[int, int]]) -> int | None:
    """Return the larger of the two tops that fit all ranges; None if no two do."""
    found = [one for one in ranges if one[1] >= 0]
    if not found:
        return 0
    least, most = min(low for low, _ in found), max(high for _, high in found)
    return most if most - least < 2 and most < exact.SPECIAL else None


def _table(lines: list[tuple[int, ...]], columns: int) -> IntArray:
    return frozen(np.array(lines, np.int64).reshape(-1, columns))
