"""States of keys over a sliding window: parts that can be subtracted are, all others are kept in two stacks.

The parts of a state (keyed.py) are of two kinds here. *Sums* have an inverse, which is exact since all are integers:

    ADD     its columns
    EXACT   if the sums of all panes are of similar size (exact.py's top limb is G or G - 1), on a grid of five limbs:

            [panes with top G << 31 | panes with top G - 1, limb G, G - 1, G - 2, G - 3, G - 4]

            The counts of panes give the top of the rest after a large number has left, and no limb that the rest
            needs has been cut off.

All other parts are *stacked*: LEAST, and EXACT if sums differ much in size, or are not finite.

    sums      (p, 5): way, first column of the sums, columns, first column of the states, G
    stacked   (p, 4): way, first column of the stacks, columns, first column of the states
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.exact import LIMBS
from skypane.kernels.keyed import EXACT, LEAST, merge_exact_rows, merge_least
from skypane.types import IntArray

GRID: Final = LIMBS + 2
"""Columns of an exact sum on a grid."""
_HIGH: Final = 31
"""Bits for the number of panes with a top; a window has fewer than 2**31 panes."""
_LOW: Final = (1 << _HIGH) - 1


@kernel
def tops_of(states: Any, at: int) -> tuple[int, int]:
    """Return the least and the largest top limb of exact sums; (-1, -1) if all sums are zero."""
    least, most = -1, -1
    for row in range(states.shape[0]):
        top = states[row, at]
        if top >= 0:
            least = top if least < 0 else min(least, top)
            most = max(most, top)
    return least, most


@kernel
def rows_by_number(ids: IntArray, count: int) -> IntArray:
    """Return the rows in the order of their numbers, which are distinct and below `count`."""
    row_of = np.full(count, -1, np.int64)
    for row in range(ids.size):
        row_of[ids[row]] = row
    order = np.empty(count + 1, np.int64)
    found = 0
    for number in range(count):
        order[found] = row_of[number]
        found += row_of[number] >= 0
    return order[:found].copy()


@kernel
def sums_of(states: Any, order: IntArray, sums: IntArray, width: int) -> Any:
    """Return the sums of the given rows of states, (n, width), column-major."""
    found = np.empty((width, order.size), np.int64).T
    for part in range(sums.shape[0]):
        way, at, columns, source, top = sums[part]
        if way == EXACT:
            put_on_grid(found, at, states, order, source, top)
        else:
            put_columns(found, at, states, order, source, columns)
    return found


@inlined
def put_columns(found: Any, at: int, states: Any, order: IntArray, source: int, columns: int) -> None:
    """Copy columns of the given rows of states."""
    for column in range(columns):
        for row in range(order.size):
            found[row, at + column] = states[order[row], source + column]


@inlined
def put_on_grid(found: Any, at: int, states: Any, order: IntArray, source: int, top: int) -> None:
    """Write exact sums, whose top is `top` or `top` - 1, on the grid."""
    for row in range(order.size):
        of = order[row]
        high, low = states[of, source] == top, states[of, source] == top - 1
        found[row, at] = (high << _HIGH) + low
        for limb in range(LIMBS + 1):
            upper = states[of, source + 1 + limb] if limb < LIMBS else 0
            lower = states[of, source + limb] if limb > 0 else 0
            found[row, at + 1 + limb] = upper if high else lower if low else 0


@kernel
def stacked_of(states: Any, order: IntArray, stacked: IntArray, width: int) -> Any:
    """Return the stacked parts of the given rows of states, (n, width), column-major."""
    found = np.empty((width, order.size), np.int64).T
    for part in range(stacked.shape[0]):
        _, at, columns, source = stacked[part]
        put_columns(found, at, states, order, source, columns)
    return found


@kernel
def add_sums(totals: Any, ids: IntArray, sums: Any) -> None:
    """Add the sums of a pane to the totals of its keys."""
    for column in range(sums.shape[1]):
        for row in range(ids.size):
            totals[ids[row], column] += sums[row, column]


@kernel
def take_away(totals: Any, ids: IntArray, sums: Any) -> None:
    """Subtract the sums of a pane from the totals of its keys."""
    for column in range(sums.shape[1]):
        for row in range(ids.size):
            totals[ids[row], column] -= sums[row, column]


@kernel
def window_states(totals: Any, front: Any, back: Any, count: int, width: int, sums: IntArray, stacked: IntArray) -> Any:
    """Return the states of the first `count` keys, (count, width), column-major.

    Rows of keys without values are treated like all others, so that most loops are vectorised.
    """
    states = np.empty((width, count), np.int64).T
    for part in range(sums.shape[0]):
        way, at, columns, target, top = sums[part]
        if way == EXACT:
            take_off_grid(states, target, totals, count, at, top)
            continue
        for column in range(columns):
            for row in range(count):
                states[row, target + column] = totals[row, at + column]
    for part in range(stacked.shape[0]):
        way, at, columns, target = stacked[part]
        if way == LEAST:
            merge_least(states, target, front, back, count, at, columns)
        else:
            merge_exact_rows(states, target, front, back, count, at)
    return states


@inlined
def take_off_grid(states: Any, target: int, totals: Any, count: int, at: int, top: int) -> None:
    """Convert exact sums on the grid to the states of exact.py."""
    for row in range(count):
        panes = totals[row, at]
        states[row, target] = top if panes > _LOW else top - 1 if panes > 0 else -1
    for limb in range(LIMBS):
        for row in range(count):
            upper, lower = totals[row, at + 1 + limb], totals[row, at + 2 + limb]
            states[row, target + 1 + limb] = upper if totals[row, at] > _LOW else lower
