"""A few points by column, compared with one more 16 at a time: what many small groups live on.

Column j lies from j * stride on. There are a multiple of four columns, the last ones zero where there are no more criteria.
Where there is no point, or no more, the first column is NaN, which compares false both ways.
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


class Few(NamedTuple):
    """Memory for a few points, for what they are known by, and for one that is compared with them."""

    columns: FloatArray  # (width * stride,)
    stride: int
    names: IntArray  # (stride,)
    point: FloatArray  # (width,)


@inlined
def room_for(most: int, d: int) -> Few:
    """Return memory for so many points of d criteria."""
    width = (d + 3) // 4 * 4
    stride = (most + STEP - 1) // STEP * STEP + STEP  # one step more, so that columns do not share lines of the cache
    return Few(np.zeros(width * stride), stride, np.empty(stride, np.int64), np.zeros(width))


@inlined
def relations(columns: FloatArray, stride: int, first: int, point: FloatArray) -> tuple[np.uint64, np.uint64]:
    """Return which of the 16 points from `first` on dominate the point, and which of them it dominates, as masks."""
    below = _ALL  # not more than the point in any column
    above = _ALL  # not less
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
