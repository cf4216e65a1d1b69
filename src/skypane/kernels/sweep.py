"""Skyline in two criteria: sort by the first, keep each new minimum of the second; O(n log n) for all inputs."""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.types import BoolArray, FloatArray, IntArray


@kernel
def mark_skyline_2d(columns: FloatArray, order: IntArray, keep: BoolArray) -> None:
    """Set keep[i] for the skyline rows of (2, n) columns; `order` sorts the first column, with ties in any order."""
    n = order.shape[0]
    lowest = np.inf
    start = 0
    while start < n:
        x = columns[0, order[start]]
        end = start
        least = np.inf
        while end < n and columns[0, order[end]] == x:
            least = min(least, columns[1, order[end]])
            end += 1
        if least < lowest or start == 0:  # the least x is kept even if its best y is +inf
            for k in range(start, end):
                if columns[1, order[k]] == least:
                    keep[order[k]] = True
            lowest = least
        start = end
