"""Block nested loops for a few points: no sorting, no ranks, one compiled call for any number of short runs."""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.simd import NONE, ONE, first_bit
from skypane.types import BoolArray, FloatArray, IntArray


@kernel
def relation(points: FloatArray, a: int, b: int) -> int:
    """1 if point a dominates point b, -1 if b dominates a, 0 if they are equal or incomparable."""
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
    """Whether point a dominates point b; quicker than relation() where it mostly does not."""
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
    """Whether point i is dominated by one of the points members[first + lane], over the lanes of a mask."""
    while lanes != NONE:
        if dominates(points, members[first + first_bit(lanes)], i):
            return True
        lanes &= lanes - ONE
    return False


@kernel
def mark_skyline_of_run(points: FloatArray, low: int, high: int, window: IntArray, keep: BoolArray) -> bool:
    """Set keep[i] for the skyline of points[low:high]; return False, with nothing set, if it outgrows the window."""
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


@kernel
def _order_by_sum(points: FloatArray, low: int, order: IntArray, sums: FloatArray) -> None:
    """Order the points from `low` on, as many as `order` has room for, by their sums (Shell's sort).

    What dominates comes first then, and what it dominates is done with after one compare. No more depends on it: sums may be
    equal, or NaN where infinities meet.
    """
    n = order.shape[0]
    for k in range(n):
        order[k] = k
        total = 0.0
        for j in range(points.shape[1]):
            total += points[low + k, j]
        sums[k] = total
    for gap in (57, 23, 10, 4, 1):
        for k in range(gap, n):
            mine = order[k]
            at = k
            while at >= gap and sums[order[at - gap]] > sums[mine]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = mine


@kernel
def mark_skylines(points: FloatArray, starts: IntArray, ends: IntArray, keep: BoolArray) -> None:
    """Set keep[i] for each point i on the skyline of its run; run g is points[starts[g]:ends[g]] of the (n, d) points."""
    longest = 0
    for g in range(starts.shape[0]):
        longest = max(longest, ends[g] - starts[g])
    window = np.empty(longest, np.int64)
    order = np.empty(longest, np.int64)
    sums = np.empty(longest)
    ordered = np.empty((longest, points.shape[1]))
    marks = np.empty(longest, np.bool_)
    for g in range(starts.shape[0]):
        low = starts[g]
        n = ends[g] - low
        if n == 1:
            keep[low] = True
            continue
        _order_by_sum(points, low, order[:n], sums)
        for k in range(n):
            marks[k] = False
            for j in range(points.shape[1]):
                ordered[k, j] = points[low + order[k], j]
        mark_skyline_of_run(ordered, 0, n, window, marks)
        for k in range(n):
            keep[low + order[k]] = marks[k]
