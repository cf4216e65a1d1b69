"""Self-similar arrivals by a method of its own, the local Whittle estimator; by the shipped ones, which are blunt, within 0.1."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from tests.workloads.streams import rate_of, times_of

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads import ParetoSlots, SelfSimilar
from skypane.workloads.arrivals.long_memory import fractional_noise, parts
from skypane.workloads.estimators import counts, hurst_by_range, hurst_by_variance, tail_exponent

HURSTS = [0.55, 0.6, 0.7, 0.8, 0.9]


def local_whittle(series: IntArray | FloatArray) -> float:
    """The exponent at which the spectrum near 0 is likeliest (P. Robinson, Annals of Statistics 23, 1995): it knows no shape
    of the process, only that its spectrum goes as f^(1 - 2H)."""
    frequencies = np.arange(1, int(len(series) ** 0.65))
    power = np.abs(np.fft.rfft(series - np.mean(series)))[frequencies] ** 2
    hursts = np.arange(0.3, 1.2, 0.005)
    steep = 2 * hursts[:, None] - 1
    unlikely = np.log((frequencies**steep * power).mean(axis=1)) - steep[:, 0] * np.log(frequencies).mean()
    return float(hursts[unlikely.argmin()])


@pytest.mark.long
@pytest.mark.parametrize("hurst", HURSTS)
def test_counts_have_the_hurst_parameter_requested(hurst: float):
    found = [
        local_whittle(counts(times_of(SelfSimilar(4_000, hurst, "50 ms", streams=8), 1_000_000, seed), "50 ms"))
        for seed in range(8)
    ]
    assert np.mean(found) == pytest.approx(hurst, abs=0.03)
    assert np.abs(np.array(found) - hurst).max() < 0.12


@pytest.mark.long
@pytest.mark.parametrize("hurst", HURSTS)
def test_counts_over_few_and_many_periods_have_the_hurst_parameter(hurst: float):
    """Where on/off streams come to it in the limit: counts over m periods vary as m^H for any m that was looked at."""
    noises = (fractional_noise(hurst, np.random.default_rng(seed)) for seed in range(6))
    series = np.concatenate([chunk for noise in noises for chunk in islice(noise, 256)])
    deviations = [series[: len(series) // m * m].reshape(-1, m).sum(axis=1).std() for m in (1, 4, 16, 64)]
    slopes = np.diff(np.log(deviations)) / np.log(4)
    assert slopes == pytest.approx(np.full(3, hurst), abs=0.04)


@pytest.mark.parametrize("hurst", [0.501, *HURSTS, 0.99])
def test_the_parts_of_fractional_noise_have_its_covariances(hurst: float):
    keeps, weights, white = parts(hurst)
    assert white >= 0
    assert weights.sum() + white == pytest.approx(1)
    lags = np.arange(1, 4_096)
    covariances = (weights * keeps ** lags[:, None]).sum(axis=1)
    for m in (1, 2, 8, 64, 512, 4_096):
        varies = m + 2 * ((m - lags[: m - 1]) * covariances[: m - 1]).sum()
        assert varies == pytest.approx(m ** (2 * hurst), rel=0.04), m


@pytest.mark.parametrize("streams", [4, 32])
def test_the_rate_varies_as_that_of_so_many_streams(streams: int):
    series = counts(times_of(SelfSimilar(20_000, 0.55, "50 ms", streams), 4_000_000), "50 ms")
    assert series.mean() == pytest.approx(1_000, rel=0.1)
    assert series.var() / series.mean() ** 2 == pytest.approx(1 / streams + 1 / 1_000, rel=0.2)


@pytest.mark.long
@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8])
def test_the_shipped_estimators_find_it_within_a_tenth(hurst: float):
    times = times_of(SelfSimilar(5_000, hurst, "20 ms"), 3_000_000)
    assert rate_of(times) == pytest.approx(5_000, rel=0.1)
    series = counts(times, "100 ms")
    assert hurst_by_variance(series) == pytest.approx(hurst, abs=0.1)
    assert hurst_by_range(series) == pytest.approx(hurst, abs=0.12)


@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8])
def test_pareto_slots_have_the_tail_requested_and_no_memory(hurst: float):
    config = ParetoSlots(20_000, hurst)
    times = times_of(config, 3_000_000)
    assert rate_of(times) == pytest.approx(20_000, rel=0.1)
    series = counts(times, "1 ms")
    assert config.tail == pytest.approx(3 - 2 * hurst)
    assert tail_exponent(series) == pytest.approx(config.tail, rel=0.1)
    assert hurst_by_variance(series) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("config", [SelfSimilar, ParetoSlots])
@pytest.mark.parametrize("hurst", [0.5, 1.0, float("nan")])
def test_a_hurst_parameter_without_long_memory_is_refused(config, hurst: float):
    with pytest.raises(ConfigError, match=r"need 0\.5 < hurst < 1"):
        config(1_000, hurst)
