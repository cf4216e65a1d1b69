"""The shape of points, which determines the cost of a preference query: correlation, and share of skyline points."""

from __future__ import annotations

import numpy as np

from skypane.kernels import skyline_indices
from skypane.types import ConfigError, FloatArray


def mean_correlation(points: FloatArray) -> float:
    """Return Pearson's correlation, averaged over all pairs of the d >= 2 columns of (n, d) points."""
    n, d = points.shape
    if n < 2 or d < 2:
        raise ConfigError(f"need two rows and two columns or more for a correlation, got {n} rows, {d} columns")
    matrix = np.corrcoef(points, rowvar=False)
    return float((matrix.sum() - d) / (d * (d - 1)))


def skyline_share(points: FloatArray) -> float:
    """Return the share of (n, d) points that no other point dominates, 0 without points; smaller is better."""
    return len(skyline_indices(points)) / len(points) if len(points) else 0.0
