"""The Hurst parameter of a series of counts, by two methods: 0.5 without long memory, close to 1 with strong memory.

Both fit a straight line in log-log scales over block sizes (J. Beran, "Statistics for Long-Memory Processes", 1994,
chapter 4). Choose counts whose interval is longer than the bursts themselves: shorter ones show the shape of the
bursts, not their memory. Neither method is precise: expect errors up to 0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.estimators.counts import growing, summed

_LEAST_BLOCKS: Final = 10
_LEAST_SIZE: Final = 32
"""Values in the smallest block of hurst_by_range()."""


def hurst_by_variance(series: IntArray | FloatArray) -> float:
    """Return H by aggregated variance: the variance of means over blocks of m values falls as m^(2H - 2)."""
    sizes = _sizes(series, shortest=1)
    variances = [float(np.var(summed(series, size) / size)) for size in sizes]
    return 1 + _slope(sizes, variances) / 2


def hurst_by_range(series: IntArray | FloatArray) -> float:
    """Return H by the rescaled range: R/S of blocks of m values grows as m^H.

    Blocks have 32 values or more, since in short blocks chance alone makes R/S grow. On noise of known H the estimate
    is 0.03 too high at 0.5, right at 0.7, and 0.05 too low at 0.9 (the correction for independent values of A. Anis, E.
    Lloyd, Biometrika 63, 1976, would remove the first error and double the last).
    """
    sizes = _sizes(series, shortest=_LEAST_SIZE)
    return _slope(sizes, [_rescaled_range(series, size) for size in sizes])


def _sizes(series: IntArray | FloatArray, shortest: int) -> list[int]:
    sizes = growing(len(series) // _LEAST_BLOCKS, shortest)
    if len(sizes) < 3 or np.ptp(series) == 0:
        needed = shortest * 3 * _LEAST_BLOCKS
        raise ConfigError(f"need about {needed} counts that vary to estimate a Hurst parameter, got {len(series)}")
    return sizes


def _rescaled_range(series: IntArray | FloatArray, size: int) -> float:
    """Return the mean R/S of the blocks: range of the running sum of deviations, over the standard deviation."""
    blocks = np.asarray(series[: len(series) // size * size], dtype=np.float64).reshape(-1, size)
    deviations = blocks - blocks.mean(axis=1, keepdims=True)
    spread = deviations.std(axis=1)
    running = deviations.cumsum(axis=1)
    ranges = np.maximum(running.max(axis=1), 0) - np.minimum(running.min(axis=1), 0)
    return float(np.mean(ranges[spread > 0] / spread[spread > 0]))


def _slope(sizes: list[int], values: list[float]) -> float:
    positive = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0]
    logs = np.log(np.array(positive))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
