"""Variation and autocorrelation of the gaps between arrivals."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


def gaps(times: IntArray) -> IntArray:
    """Return the (n - 1,) microseconds between consecutive arrivals."""
    return np.diff(times)


def squared_variation(values: IntArray | FloatArray) -> float:
    """Return the squared coefficient of variation (variance over squared mean): 1 for exponential gaps, 0 for equal."""
    if not len(values) or np.mean(values) == 0:
        raise ConfigError(f"need values with a mean other than 0, got {len(values)} values")
    return float(np.var(values) / np.mean(values) ** 2)


def autocorrelation(values: IntArray | FloatArray, lags: int) -> FloatArray:
    """Return the (lags,) autocorrelation coefficients r_1..r_lags of a series; zeros if it does not vary."""
    if not 0 < lags < len(values):
        raise ConfigError(f"need 0 < lags < the number of values, got lags={lags} of {len(values)} values")
    centred = np.asarray(values, dtype=np.float64) - np.mean(values)
    energy = float(centred @ centred)
    if energy == 0:
        return np.zeros(lags)
    return np.array([centred[lag:] @ centred[:-lag] for lag in range(1, lags + 1)]) / energy
