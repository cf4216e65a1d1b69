"""Thinning: strong points remove the points that they dominate, column by column, in rounds as long as that pays off.

On independent or correlated criteria, this leaves few points before anything is sorted, at a few comparisons per point,
and reads columns as they come from Arrow. It sees every value, so it also checks for NaN. All rounds are one compiled
call: each return to Python costs more than the comparisons of a small set.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.kernels.gathering import gather
from skypane.kernels.nested_loops import mark_skyline_of_run
from skypane.kernels.simd import NONE, ONE, first_bit, floats_ge, floats_gt
from skypane.kernels.strong_points import StrongPoints, strong_points
from skypane.types import BoolArray, FloatArray, IntArray

SMALL: Final = 192
"""Number of points up to which nested loops are faster than sorting."""

_SHORT: Final = 24
"""Size of a skyline up to which nested loops are faster for any number of points; a longer one overflows early."""

_ROUNDS: Final = 6
_WORTH_FILTERING: Final = 1024  # points; with fewer, choosing strong points costs more than it saves
_WORTH_GOING_ON: Final = 512  # points after a first round; their skyline is seldom short
_WORTH_A_ROUND: Final = 0.2  # share of the points that a round must be expected to remove
_STEP: Final = 16  # points per compare


class Thinned(NamedTuple):
    """The remaining points: their skyline, or a superset of it."""

    indices: IntArray  # (m,), ascending
    columns: FloatArray  # (d, m), unless done
    done: bool  # whether the indices are the skyline
    has_nan: bool  # whether a value is NaN; the other fields are invalid then


@kernel
def _survives(columns: FloatArray, i: int, strong: StrongPoints) -> bool:
    for k in range(strong.points.shape[0]):
        if columns[strong.lead, i] > strong.points[k, strong.lead]:
            below = True
            for j in range(columns.shape[0]):
                if columns[j, i] < strong.points[k, j]:
                    below = False
                    break
            if below:
                return False
    return True


@kernel
def survivors(columns: FloatArray, strong: StrongPoints) -> tuple[IntArray, bool]:
    """Return the indices of the points that no strong point dominates while being < in the lead column; and a NaN flag.

    `columns` are (d, n), d >= 2. Requiring < in one fixed column saves a second comparison of every column and keeps
    the strong points themselves; at worst it keeps more points. A NaN compares false, so a point with one may be
    removed or kept: the caller must check the flag.
    """
    d, n = columns.shape
    flat = columns.ravel()
    lead = strong.lead
    points = strong.points
    others = np.array([j for j in range(d) if j != lead])
    out = np.empty(n, np.int64)
    size = 0
    blocked = n & ~(_STEP - 1)
    everything = np.uint16(0xFFFF)
    ordered = everything
    for i in range(0, blocked, _STEP):
        for j in range(d):
            ordered &= floats_ge(flat, j * n + i, -np.inf)
        left = everything
        for k in range(points.shape[0]):
            j = others[0]
            hit = floats_gt(flat, lead * n + i, points[k, lead]) & floats_ge(flat, j * n + i, points[k, j])
            at = 1
            while at < d - 1 and hit != 0:
                j = others[at]
                hit &= floats_ge(flat, j * n + i, points[k, j])
                at += 1
            left &= ~hit
            if left == 0:
                break
        rest = np.uint64(left)
        while rest != NONE:
            out[size] = i + first_bit(rest)
            size += 1
            rest &= rest - ONE
    has_nan = ordered != everything
    for i in range(blocked, n):
        for j in range(d):
            has_nan |= columns[j, i] != columns[j, i]
        if _survives(columns, i, strong):
            out[size] = i
            size += 1
    return out[:size], has_nan


@kernel
def has_nan(columns: FloatArray) -> bool:
    """Return whether a value of the (d, n) columns is NaN."""
    flat = columns.ravel()
    blocked = flat.shape[0] & ~(_STEP - 1)
    for i in range(0, blocked, _STEP):
        if floats_ge(flat, i, -np.inf) != np.uint16(0xFFFF):
            return True
    for i in range(blocked, flat.shape[0]):
        if flat[i] != flat[i]:
            return True
    return False


@kernel
def _nested_loops(columns: FloatArray) -> tuple[BoolArray, bool]:
    """Return flags of the skyline points, and whether the skyline fitted the window; if not, no flag is set."""
    n = columns.shape[1]
    keep = np.zeros(n, np.bool_)
    window = np.empty(n if n <= SMALL else _SHORT, np.int64)
    done = mark_skyline_of_run(columns.T.copy(), 0, n, window, keep)
    return keep, done


@kernel
def thinned(columns: FloatArray) -> Thinned:
    """Thin (d, n) columns, d >= 2; if few points or a short skyline are left, nested loops compute the skyline."""
    indices = np.arange(columns.shape[1])
    left = columns
    nan = False
    for turn in range(_ROUNDS):
        worth = left.shape[1] >= (_WORTH_GOING_ON if turn else _WORTH_FILTERING)
        strong = strong_points(left) if worth else None
        if strong is None or strong.share < _WORTH_A_ROUND:
            nan = turn == 0 and has_nan(columns)
            break
        stay, nan = survivors(left, strong)
        left = gather(left, stay)
        indices = indices[stay]
        if nan:
            break
    if nan:
        return Thinned(indices, left, done=False, has_nan=True)
    keep, done = _nested_loops(left)
    return Thinned(indices[keep] if done else indices, left, done, nan)
