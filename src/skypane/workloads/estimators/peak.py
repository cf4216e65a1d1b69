"""The peak-to-mean ratio of counts."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


def peak_to_mean(series: IntArray | FloatArray) -> float:
    """Return the highest count divided by the mean count (paper 5, table 3: counts per second)."""
    if not len(series) or not np.sum(series):
        raise ConfigError(f"need counts that are not all 0, got {len(series)} intervals")
    return float(np.max(series) / np.mean(series))
