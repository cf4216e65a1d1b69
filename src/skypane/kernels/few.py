"""A few points by column, compared with one more 16 at a time: what many small groups live on.

Column j of `room` points lies from j * room on; room is a multiple of 16. Where there is no point, or no more, the first
column is NaN, which compares false both ways, and the others may be anything.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skypane.kernels.compiled import inlined
from skypane.kernels.simd import floats_ge, floats_le
from skypane.types import FloatArray

STEP: Final = 16
"""Points per compare."""

_ALL: Final = np.uint16(0xFFFF)


@inlined
def room_for(size: int) -> int:
    """Return the room of so many points."""
    return (size + STEP - 1) // STEP * STEP


@inlined
def relations(few: FloatArray, room: int, first: int, point: FloatArray) -> tuple[np.uint64, np.uint64]:
    """Return which of the 16 points from `first` on dominate the point, and which of them it dominates, as masks."""
    below = _ALL  # not more than the point in any column
    above = _ALL  # not less
    for j in range(point.shape[0]):
        below &= floats_le(few, j * room + first, point[j])
        above &= floats_ge(few, j * room + first, point[j])
        if below | above == 0:
            break
    return np.uint64(below & ~above), np.uint64(above & ~below)
