from __future__ import annotations

import numpy as np
import pytest

from skypane.types import ConfigError
from skypane.workloads.estimators import dispersion, dispersion_of_counts


def test_the_curve_is_variance_over_mean_at_each_scale():
    series = np.random.default_rng(1).integers(0, 100, 1_000)
    found = dispersion_of_counts(series, 2.0, least_intervals=100)
    assert found.intervals.tolist() == [2.0, 4.0, 6.0, 8.0, 14.0]
    for interval, ratio in zip(found.intervals, found.ratios, strict=True):
        size = int(interval / 2)
        sums = [series[i : i + size].sum() for i in range(0, len(series) // size * size, size)]
        assert ratio == pytest.approx(np.var(sums, ddof=1) / np.mean(sums))


def test_batches_of_poisson_arrivals_have_the_batch_size():
    # Compound Poisson with batches of k: Var / E = k at every scale.
    times = np.repeat(np.cumsum(np.random.default_rng(2).exponential(1_000, 200_000)).astype(np.int64), 7)
    found = dispersion(times)
    assert found.stable
    assert found.value == pytest.approx(7, rel=0.1)


def test_even_arrivals_have_none():
    assert dispersion(np.arange(0, 10**7, 100)).value == pytest.approx(0, abs=1e-3)


def test_a_trend_never_becomes_stable():
    found = dispersion_of_counts(np.arange(1_000), 1.0)
    assert not found.stable
    assert (np.diff(found.ratios) > 0).all()
    assert found.value == found.ratios[-1]


@pytest.mark.parametrize("times", [[], [5], [5, 5, 5]])
def test_too_few_arrivals_are_refused(times: list[int]):
    with pytest.raises(ConfigError, match=f"need arrivals at two times or more .* got {len(times)} arrivals"):
        dispersion(np.array(times, dtype=np.int64))


@pytest.mark.parametrize("series", [np.ones(49), np.zeros(100)])
def test_too_few_counts_are_refused(series):
    with pytest.raises(ConfigError, match=f"need counts of 50 intervals or more, not all 0, .* got {len(series)}"):
        dispersion_of_counts(series, 1.0)
