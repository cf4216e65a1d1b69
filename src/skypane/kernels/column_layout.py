"""Frozen columns, the only array layout that compiled kernels receive, so that each is compiled once.

Columns are `(d, n)` float64, C-contiguous: one criterion after the other. Fortran-ordered `(n, d)` points have this
layout when transposed, so Arrow data is not copied. Columns are read-only: Numba has separate types for mutable and
read-only arrays, and compiles a function for each; Arrow's memory is never mutable, so all arrays are made read-only.
This also makes writing to an input a compile-time error.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from skypane.types import FloatArray, IntArray

_T = TypeVar("_T", bound=np.generic)

MAX_COLUMNS: Final = 254
"""Counts of columns are stored in bytes, whose largest value is reserved."""


def frozen(array: NDArray[_T]) -> NDArray[_T]:
    """Return a read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view


def columns_of(points: Any) -> FloatArray:
    """Return `(n, d)` points as frozen `(d, n)` columns, without a copy if they are Fortran-ordered float64."""
    array = np.asarray(points)
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_COLUMNS:
        raise ValueError(f"need points of shape (n, d) with 1 <= d <= {MAX_COLUMNS}, got shape {array.shape}")
    return frozen(np.require(array.T, np.float64, ["C_CONTIGUOUS", "ALIGNED"]))


def codes_of(groups: Any, n: int) -> IntArray:
    """Return one int64 group code per row, frozen; `groups` must be integers of shape (n,)."""
    array = np.asarray(groups)
    if array.shape != (n,):
        raise ValueError(f"need one group code per row, shape ({n},), got shape {array.shape}")
    if array.dtype.kind not in "iub":
        raise ValueError(f"need integer group codes, got dtype {array.dtype}")
    return frozen(np.require(array, np.int64, ["C_CONTIGUOUS", "ALIGNED"]))


def points_of(columns: FloatArray) -> FloatArray:
    """Return `(d, n)` columns as frozen, C-contiguous `(n, d)` points: the values of a point are adjacent."""
    return frozen(np.ascontiguousarray(columns.T))
