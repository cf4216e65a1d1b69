"""A column-wise buffer of a few points that are compared with one point 16 at a time, for small groups.

Column j begins at index j * stride. The number of columns is a multiple of four; columns beyond the criteria are zero.
Where there is no point, or it has been removed, the first column is NaN, which compares false both ways.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined
from skypane.kernels.simd import floats_ge, floats_le
from skypane.types import FloatArray, IntArray

STEP: Final = 16
"""Points per compare."""

_ALL: Final = np.uint16(0xFFFF)


class PointBuffer(NamedTuple):
    """Memory for a few points, for their names (rows or slots), and for the point that is compared with them."""

    columns: FloatArray  # (width * stride,)
    stride: int
    names: IntArray  # (stride,)
    point: FloatArray  # (width,)


@inlined
def room_for(most: int, d: int) -> PointBuffer:
    """Return memory for `most` points of d criteria."""
    width = (d + 3) // 4 * 4
    stride = (most + STEP - 1) // STEP * STEP + STEP  # one step more, so that columns do not share cache lines
    return PointBuffer(np.zeros(width * stride), stride, np.empty(stride, np.int64), np.zeros(width))


@inlined
def relations(columns: FloatArray, stride: int, first: int, point: FloatArray) -> tuple[np.uint64, np.uint64]:
    """Return masks of the 16 points from `first` on that dominate `point`, and of those that it dominates."""
    below = _ALL  # <= the point in every column
    above = _ALL  # >= the point in every column
    for j in range(0, point.shape[0], 4):
        at = j * stride + first
        below &= floats_le(columns, at, point[j])
        above &= floats_ge(columns, at, point[j])
        at += stride
        below &= floats_le(columns, at, point[j + 1])
        above &= floats_ge(columns, at, point[j + 1])
        at += stride
        below &= floats_le(columns, at, point[j + 2])
        above &= floats_ge(columns, at, point[j + 2])
        at += stride
        below &= floats_le(columns, at, point[j + 3])
        above &= floats_ge(columns, at, point[j + 3])
        if below | above == 0:
            break
    return np.uint64(below & ~above), np.uint64(above & ~below)
