"""Which parts of the states of a sliding window can be taken away again, and which lie in stacks (see sliding.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skypane.kernels import exact, keyed, sliding
from skypane.kernels.layout import frozen
from skypane.types import IntArray

Tops = tuple[tuple[int, int], ...]
"""Of each exact sum of some states, in the order of the parts, the least and the largest top limb; -1 where all are zero."""


@dataclass(frozen=True)
class Split:
    """How states of a width are divided into sums and what is stacked, and how many columns each has."""

    #: what the kernels know of parts: way, first column, columns
    plan: IntArray
    #: of each exact sum: the larger of the two tops that fit, None where it is stacked
    grids: tuple[int | None, ...]
    sums: IntArray
    stacked: IntArray
    sums_width: int
    stacked_width: int

    @classmethod
    def of(cls, plan: IntArray, tops: Iterable[Tops]) -> Split:
        """Return the split of states of this plan, where panes have sums with these tops."""
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
                kept = sliding.GRID if way == keyed.EXACT else columns
                sums.append((way, at, kept, source, top))
                at += kept
        return cls(plan, grids, _table(sums, 5), _table(stacked, 4), at, place)

    def holds(self, tops: Tops) -> bool:
        """Whether sums with these tops fit."""
        return all(
            grid is None or most < 0 or grid - 1 <= least <= most <= grid
            for grid, (least, most) in zip(self.grids, tops, strict=True)
        )

    def is_worse_than_of(self, tops: Iterable[Tops]) -> bool:
        """Whether something is stacked that need not be, if these tops are all there are."""
        return any(
            old is None and new is not None for old, new in zip(self.grids, _grids(self.plan, tops), strict=True)
        )

    @property
    def width(self) -> int:
        """Columns of states."""
        return int(self.plan[-1, 1] + self.plan[-1, 2])

    def empty_stack(self, n: int) -> Any:
        """Return what is stacked of n keys without rows; column by column in memory, as answers are made."""
        return np.asfortranarray(keyed.empty_states(n, self.stacked_width, self.stacked))


def tops_in(states: Any, plan: IntArray) -> Tops:
    """Return the tops of the exact sums of some states."""
    return tuple(sliding.tops_of(states, at) for way, at, _ in plan.tolist() if way == keyed.EXACT)


def _grids(plan: IntArray, several: Iterable[Tops]) -> tuple[int | None, ...]:
    none = tuple((-1, -1) for way in plan[:, 0].tolist() if way == keyed.EXACT)
    return tuple(_grid(ranges) for ranges in zip(none, *several, strict=True))


def _grid(ranges: Sequence[tuple[int, int]]) -> int | None:
    """Return the larger of the two tops that all fit on, None if they do not."""
    found = [one for one in ranges if one[1] >= 0]
    if not found:
        return 0
    least, most = min(low for low, _ in found), max(high for _, high in found)
    return most if most - least < 2 and most < exact.SPECIAL else None


def _table(lines: list[tuple[int, ...]], columns: int) -> IntArray:
    return frozen(np.array(lines, np.int64).reshape(-1, columns))
