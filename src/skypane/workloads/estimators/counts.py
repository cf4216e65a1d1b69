"""Tuples per interval, the input of most estimators, and their peak."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray, Micros, micros


def counts(times: IntArray, interval: Duration | Micros) -> IntArray:
    """Return the number of tuples in each whole interval from the first tuple on; `times` are ascending microseconds.

    The last interval, which the end of the stream cuts short, is excluded.
    """
    length = interval if isinstance(interval, int) else micros(interval, "interval")
    if length <= 0:
        raise ConfigError(f"need interval > 0, got interval={interval!r}")
    if not len(times):
        return np.zeros(0, dtype=np.int64)
    edges = np.arange(times[0], times[-1] + 1, length)
    return np.diff(np.searchsorted(times, edges))


def summed(series: IntArray | FloatArray, size: int) -> FloatArray:
    """Return the sums of consecutive blocks of `size` values; an incomplete last block is dropped."""
    blocks = len(series) // size
    return np.asarray(series[: blocks * size].reshape(blocks, size).sum(axis=1), dtype=np.float64)


def growing(longest: int, shortest: int = 1, growth: float = 1.5) -> list[int]:
    """Return block sizes from `shortest` up to `longest`, each about `growth` times the one before."""
    sizes: list[int] = []
    size = float(max(1, shortest))
    while size <= longest:
        sizes.append(round(size))
        size = max(size * growth, size + 1)
    return sizes


def peak_to_mean(series: IntArray | FloatArray) -> float:
    """Return the highest count divided by the mean count (paper 5, table 3: counts per second)."""
    if not len(series) or not np.sum(series):
        raise ConfigError(f"need counts that are not all 0, got {len(series)} intervals")
    return float(np.max(series) / np.mean(series))
