"""Correlation of points."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, FloatArray


def mean_correlation(points: FloatArray) -> float:
    """Return Pearson's correlation, averaged over all pairs of the d >= 2 columns of (n, d) points."""
    n, d = points.shape
    if n < 2 or d < 2:
        raise ConfigError(f"need two rows and two columns or more for a correlation, got {n} rows, {d} columns")
    matrix = np.corrcoef(points, rowvar=False)
    return float((matrix.sum() - d) / (d * (d - 1)))
