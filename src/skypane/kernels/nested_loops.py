"""Block nested loops, for small sets of points: they need neither sorting nor ranks."""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.simd import NONE, ONE, first_bit
from skypane.types import BoolArray, FloatArray, IntArray


@kernel
def relation(points: FloatArray, a: int, b: int) -> int:
    """Return 1 if point a dominates point b, -1 if b dominates a, 0 if they are equal or incomparable."""
    less = False
    more = False
    for j in range(points.shape[1]):
        x = points[a, j]
        y = points[b, j]
        if x < y:
            less = True
        elif x > y:
            more = True
        if less and more:
            return 0
    return less - more


@kernel
def dominates(points: FloatArray, a: int, b: int) -> bool:
    """Return whether point a dominates point b; faster than relation() if it usually does not."""
    less = False
    for j in range(points.shape[1]):
        x = points[a, j]
        y = points[b, j]
        if x > y:
            return False
        less |= x < y
    return less


@kernel
def any_dominates(points: FloatArray, members: IntArray, first: int, lanes: np.uint64, i: int) -> bool:
    """Return whether one of the points members[first + lane], for the lanes of a mask, dominates point i."""
    while lanes != NONE:
        if dominates(points, members[first + first_bit(lanes)], i):
            return True
        lanes &= lanes - ONE
    return False


@kernel
def mark_skyline_of_run(points: FloatArray, low: int, high: int, window: IntArray, keep: BoolArray) -> bool:
    """Set keep[i] for the skyline of points[low:high]; return False, and set nothing, if it does not fit the window."""
    size = 0
    for i in range(low, high):
        dominated = False
        w = 0
        while w < size:
            r = relation(points, window[w], i)
            if r > 0:
                dominated = True
                break
            if r < 0:
                size -= 1
                window[w] = window[size]
            else:
                w += 1
        if not dominated:
            if size == window.shape[0]:
                return False
            window[size] = i
            size += 1
    for w in range(size):
        keep[window[w]] = True
    return True
