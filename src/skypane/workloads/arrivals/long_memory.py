"""Endless fractional noise: a sum of first-order autoregressions, each slower than the one before, and white noise.

    covariance at lag k >= 1    H (2H - 1) k^(2H-2)  =  C integral of e^(-k s) s^(1-2H) ds
                                with C = H (2H - 1) / Gamma(2 - 2H)

The integral is approximated by a sum over values of s, each half of the one before: a sum of first-order
autoregressions, which are drawn step by step (after S. Sorbye, E. Myrvoll-Nilsen, H. Rue, "An approximate fractional
Gaussian noise model with O(n) computational cost", Statistics and Computing 29, 2019, who fit the weights). The rest of
the variance at lag 0 is white noise; its weight is chosen so that sums over m values vary as m^(2H) exactly at m = 64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from skypane.types import FloatArray

_CHUNK: Final = 256
_FASTEST: Final = 2.0
"""Decay rate per step of the fastest autoregression."""
_NOISES: Final = 40
"""Number of autoregressions; the slowest decays in 2^38 steps."""
_EXACT_AT: Final = 64


def fractional_noise(hurst: float, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield chunks of normal values with variance 1 and long memory, 0.5 < hurst < 1, without end."""
    keeps, weights, white = parts(hurst)
    deviations, fresh = np.sqrt(weights), np.sqrt(1 - keeps * keeps)
    state = rng.standard_normal(_NOISES)
    while True:
        drawn = rng.standard_normal((_CHUNK, _NOISES)) * fresh
        noise = math.sqrt(white) * rng.standard_normal(_CHUNK)
        for step in range(_CHUNK):
            state = keeps * state + drawn[step]
            noise[step] += state @ deviations
        yield noise


def parts(hurst: float) -> tuple[FloatArray, FloatArray, float]:
    """Return the share that each autoregression keeps per step, their variances, and that of the white noise.

    The variances add up to 1.
    """
    speeds: FloatArray = _FASTEST * np.power(0.5, np.arange(_NOISES))
    power = 2 - 2 * hurst
    factor = hurst * (2 * hurst - 1) / math.gamma(power)
    weights: FloatArray = np.asarray(factor * math.log(2) * speeds**power, np.float64)
    keeps = np.exp(-speeds)
    weights[-1] += factor * (speeds[-1] / math.sqrt(2)) ** power / power  # the rest of the integral, below the last s
    whole = _variance(hurst, keeps, weights)
    # Correct lag 1, where the sum is far from the power law, as far as the variance of the white noise permits.
    missing = (2 ** (2 * hurst - 1) - 1 - weights @ keeps) / keeps[0]
    weights[0] += min(missing, (whole - weights.sum()) / (1 + 2 * keeps[0] / (1 - keeps[0])))
    whole = _variance(hurst, keeps, weights)
    return keeps, weights / whole, 1 - weights.sum() / whole


def _variance(hurst: float, keeps: FloatArray, weights: FloatArray) -> float:
    """Return the variance of one value at which sums over 64 values vary as 64^(2H)."""
    lags = np.arange(1, _EXACT_AT)
    covariances = (weights * keeps ** lags[:, None]).sum(axis=1)
    return float((_EXACT_AT ** (2 * hurst) - 2 * ((_EXACT_AT - lags) * covariances).sum()) / _EXACT_AT)
