"""Batch skyline: strong points while they pay, then a sweep (d = 2), nested loops (few rows) or the sort-filter."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.layout import columns_of, rows_of, take_rows
from skypane.kernels.small import mark_skylines
from skypane.kernels.sortfilter import mark_skyline
from skypane.kernels.strong import has_nan, strong_points, survivors
from skypane.kernels.sweep import mark_skyline_2d
from skypane.types import BoolArray, FloatArray, IntArray

SMALL: Final = 192
"""Up to here nested loops win over sorting."""

_ROUNDS: Final = 6
_WORTH_FILTERING: Final = 1024  # rows; below, choosing strong points costs more than it saves
_WORTH_A_ROUND: Final = 0.3  # share of the rows that a round must promise to remove


def skyline_rows(points: Any) -> IntArray:
    """Return the rows of `points` that no other row dominates: the skyline, or Pareto-minimal rows.

    `points` is (n, d), n >= 0, 1 <= d <= 254, smaller is better; best as Fortran-ordered float64, which is not copied.
    A row dominates another if it is <= in all columns and < in one, so rows equal in all columns all stay. Infinities
    are ordinary values, and -0.0 equals 0.0. The result is int64 (m,), ascending. NaN raises ValueError.
    """
    return skyline_of_columns(columns_of(points))


def skyline_of_columns(columns: FloatArray) -> IntArray:
    """skyline_rows for frozen (d, n) columns."""
    d, n = columns.shape
    if n == 0:
        return np.empty(0, np.int64)
    if d == 1 or n < _WORTH_FILTERING:
        require_numbers(columns)
        return np.flatnonzero(_keep(columns))
    rows: IntArray | None = None
    for _ in range(_ROUNDS):
        if columns.shape[1] < _WORTH_FILTERING:
            break
        strong, lead, share = strong_points(columns)
        if share < _WORTH_A_ROUND:
            break
        left, nan = survivors(columns, strong, lead)
        if nan:
            raise_nan(columns)
        columns = take_rows(columns, left)
        rows = left if rows is None else rows[left]
    if rows is None:
        require_numbers(columns)
        return np.flatnonzero(_keep(columns))
    return rows[_keep(columns)]


def _keep(columns: FloatArray) -> BoolArray:
    d, n = columns.shape
    if d == 1:
        return np.asarray(columns[0] == columns[0].min())
    keep = np.zeros(n, np.bool_)
    if d == 2:
        mark_skyline_2d(columns, np.argsort(columns[0]), keep)
    elif n <= SMALL:
        mark_skylines(rows_of(columns), _ZERO, np.array([n]), keep)
    else:
        mark_skyline(columns, keep)
    return keep


_ZERO: Final = np.zeros(1, np.int64)


def require_numbers(columns: FloatArray) -> None:
    """Raise ValueError if a value is NaN, which compares with nothing."""
    if has_nan(columns):
        raise_nan(columns)


def raise_nan(columns: FloatArray) -> None:
    """Raise the ValueError that names the first NaN of (d, n) columns by row and column."""
    row, column = np.argwhere(np.isnan(columns.T))[0]
    raise ValueError(f"points must not be NaN, got NaN in column {column} of row {row}; remove such rows first")
