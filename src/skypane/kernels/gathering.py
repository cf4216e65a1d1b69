"""Extraction of points at given indices from columns."""

from __future__ import annotations

import numpy as np

from skypane.kernels.column_layout import frozen
from skypane.kernels.compiled import kernel
from skypane.types import FloatArray, IntArray


@kernel
def gather(columns: FloatArray, indices: IntArray) -> FloatArray:
    """Return the points at `indices` of `(d, n)` columns, as columns."""
    out = np.empty((columns.shape[0], indices.shape[0]))
    for j in range(columns.shape[0]):
        for i in range(indices.shape[0]):
            out[j, i] = columns[j, indices[i]]
    return out


@kernel
def put_points(points: FloatArray, columns: FloatArray, indices: IntArray) -> None:
    """Write the points at `indices` of `(d, n)` columns into `(m, d)` points."""
    for i in range(indices.shape[0]):
        for j in range(columns.shape[0]):
            points[i, j] = columns[j, indices[i]]


def take_points(columns: FloatArray, indices: IntArray) -> FloatArray:
    """Return the points at `indices` of frozen `(d, n)` columns, as frozen columns."""
    return frozen(gather(columns, indices))
