"""The skyline of a set of points: thinning, then a sweep (d = 2), nested loops (few points) or sort-filter."""

from __future__ import annotations

from typing import Any

import numpy as np

from skypane.kernels.column_layout import columns_of, frozen
from skypane.kernels.sort_filter import mark_skyline
from skypane.kernels.sweep import mark_skyline_2d
from skypane.kernels.thinning import has_nan, thinned
from skypane.types import BoolArray, FloatArray, IntArray


def skyline_indices(points: Any) -> IntArray:
    """Return the indices of the rows of `points` that no other row dominates: the skyline, or Pareto-minimal rows.

    `points` is (n, d), n >= 0, 1 <= d <= 254, smaller is better; Fortran-ordered float64 is not copied. A row dominates
    another if it is <= in all columns and < in one, so rows equal in all columns are all kept. Infinities are ordinary
    values, and -0.0 equals 0.0. The result is int64 (m,), ascending. NaN raises ValueError.
    """
    return skyline_of_columns(columns_of(points))


def skyline_of_columns(columns: FloatArray) -> IntArray:
    """Return skyline_indices() of frozen (d, n) columns."""
    d, n = columns.shape
    if n == 0:
        return np.empty(0, np.int64)
    if d == 1:
        require_numbers(columns)
        return np.flatnonzero(columns[0] == columns[0].min())
    indices, left, done, nan = thinned(columns)
    if nan:
        raise_nan(columns)
    return indices if done else indices[_keep(frozen(left))]


def _keep(columns: FloatArray) -> BoolArray:
    d, n = columns.shape
    keep = np.zeros(n, np.bool_)
    if d == 2:
        mark_skyline_2d(columns, np.argsort(columns[0]), keep)
    else:
        mark_skyline(columns, keep)
    return keep


def require_numbers(columns: FloatArray) -> None:
    """Raise ValueError if a value is NaN, which has no order."""
    if has_nan(columns):
        raise_nan(columns)


def raise_nan(columns: FloatArray) -> None:
    """Raise a ValueError that names row and column of the first NaN in (d, n) columns."""
    row, column = np.argwhere(np.isnan(columns.T))[0]
    raise ValueError(f"points must not be NaN, got NaN in column {column} of row {row}; remove such rows first")
