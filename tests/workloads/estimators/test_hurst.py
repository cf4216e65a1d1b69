"""Both methods on fractional Gaussian noise, drawn exactly: its Hurst parameter is known."""

from __future__ import annotations

import numpy as np
import pytest

from skypane.types import ConfigError, FloatArray
from skypane.workloads.estimators import hurst_by_range, hurst_by_variance


def fractional_noise(n: int, hurst: float, seed: int) -> FloatArray:
    """Draw by circulant embedding (R. Davies, D. Harte, Biometrika 74, 1987): exact covariances of n values."""
    k = np.arange(n + 1)
    covariance = (
        np.abs(k + 1.0) ** (2 * hurst) - 2 * np.abs(k * 1.0) ** (2 * hurst) + np.abs(k - 1.0) ** (2 * hurst)
    ) / 2
    spectrum = np.fft.rfft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(len(spectrum)) + 1j * rng.standard_normal(len(spectrum))
    noise[[0, -1]] = np.sqrt(2) * noise[[0, -1]].real
    return np.fft.irfft(np.sqrt(np.maximum(spectrum, 0) * n) * noise)[:n]


@pytest.mark.parametrize("hurst", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_both_methods_find_the_parameter_of_fractional_noise(hurst: float):
    by_variance, by_range = [], []
    for seed in range(8):
        noise = 1_000 + fractional_noise(1 << 14, hurst, seed)
        by_variance.append(hurst_by_variance(noise))
        by_range.append(hurst_by_range(noise))
    assert np.mean(by_variance) == pytest.approx(hurst, abs=0.05)
    assert np.mean(by_range) == pytest.approx(hurst, abs=0.06)
    assert np.abs(np.array(by_variance) - hurst).max() < 0.1
    assert np.abs(np.array(by_range) - hurst).max() < 0.1


@pytest.mark.parametrize("estimate", [hurst_by_variance, hurst_by_range])
@pytest.mark.parametrize("series", [np.arange(20.0), np.ones(10_000)])
def test_a_series_too_short_or_flat_is_refused(estimate, series: FloatArray):
    with pytest.raises(ConfigError, match="counts that vary to estimate a Hurst parameter"):
        estimate(series)
