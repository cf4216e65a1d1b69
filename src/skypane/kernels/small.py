"""Block nested loops for a few rows: no sorting, no ranks, one compiled call for any number of short runs of rows."""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.types import BoolArray, FloatArray, IntArray


@kernel
def relation(rows: FloatArray, a: int, b: int) -> int:
    """1 if row a dominates row b, -1 if b dominates a, 0 if they are equal or incomparable."""
    less = False
    more = False
    for j in range(rows.shape[1]):
        x = rows[a, j]
        y = rows[b, j]
        if x < y:
            less = True
        elif x > y:
            more = True
        if less and more:
            return 0
    return less - more


@kernel
def dominates_row(rows: FloatArray, a: int, b: int) -> bool:
    """Whether row a dominates row b; quicker than relation() where it mostly does not."""
    less = False
    for j in range(rows.shape[1]):
        x = rows[a, j]
        y = rows[b, j]
        if x > y:
            return False
        less |= x < y
    return less


@kernel
def _skyline_of_run(rows: FloatArray, low: int, high: int, window: IntArray, keep: BoolArray) -> None:
    size = 0
    for i in range(low, high):
        dominated = False
        w = 0
        while w < size:
            r = relation(rows, window[w], i)
            if r > 0:
                dominated = True
                break
            if r < 0:
                size -= 1
                window[w] = window[size]
            else:
                w += 1
        if not dominated:
            window[size] = i
            size += 1
    for w in range(size):
        keep[window[w]] = True


@kernel
def mark_skylines(rows: FloatArray, starts: IntArray, ends: IntArray, keep: BoolArray) -> None:
    """Set keep[i] for each row i on the skyline of its run; run g is rows[starts[g]:ends[g]] of the (n, d) rows."""
    longest = 0
    for g in range(starts.shape[0]):
        longest = max(longest, ends[g] - starts[g])
    window = np.empty(longest, np.int64)
    for g in range(starts.shape[0]):
        _skyline_of_run(rows, starts[g], ends[g], window, keep)
