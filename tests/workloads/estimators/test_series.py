"""Counts, variation, peaks, tails, lateness, delays, skew, skylines: each against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skypane.types import ConfigError
from skypane.workloads.estimators import (
    autocorrelation,
    counts,
    delay_quantiles,
    gaps,
    late_share,
    mean_correlation,
    peak_to_mean,
    skyline_share,
    squared_variation,
    tail_exponent,
    zipf_exponent,
)
from skypane.workloads.estimators.counts import growing, summed

TIMES = st.lists(st.integers(0, 200), max_size=40).map(lambda times: np.array(sorted(times), dtype=np.int64))


@given(TIMES, st.integers(1, 60))
def test_counts_are_those_of_whole_intervals(times, interval: int):
    found = counts(times, interval)
    first, last = (int(times[0]), int(times[-1])) if len(times) else (0, 0)
    whole = (last - first) // interval
    assert found.tolist() == [
        sum(first + i * interval <= time < first + (i + 1) * interval for time in times.tolist()) for i in range(whole)
    ]


def test_sums_leave_the_rest_out():
    assert summed(np.arange(7), 3).tolist() == [3.0, 12.0]
    assert growing(20) == [1, 2, 3, 4, 7, 10, 15]
    assert growing(0) == []


@given(st.lists(st.integers(-50, 50), max_size=40))
def test_late_is_what_an_earlier_arrival_overtook(times: list[int]):
    late = [any(before > time for before in times[:i]) for i, time in enumerate(times)]
    assert late_share(np.array(times, dtype=np.int64)) == (sum(late) / len(late) if late else 0.0)


def test_delay_quantiles_are_in_seconds():
    times = np.array([0, 1_000_000, 2_000_000])
    assert delay_quantiles(times, times + np.array([0, 500_000, 2_000_000]), [0, 0.5, 1]).tolist() == [0.0, 0.5, 2.0]


def test_variation_and_correlation_of_a_known_series():
    assert squared_variation(np.array([1, 3])) == 0.25
    assert gaps(np.array([3, 5, 9])).tolist() == [2, 4]
    # Alternating: each next value is the opposite.
    assert_allclose(autocorrelation(np.tile([1.0, -1.0], 500), 3), [-0.999, 0.998, -0.997])
    assert autocorrelation(np.ones(5), 2).tolist() == [0.0, 0.0]


def test_correlation_of_an_autoregression():
    rng = np.random.default_rng(1)
    series = [0.0]
    for noise in rng.standard_normal(100_000):
        series.append(0.7 * series[-1] + noise)
    assert_allclose(autocorrelation(np.array(series), 3), [0.7, 0.49, 0.343], atol=0.02)


def test_peak_to_mean():
    assert peak_to_mean(np.array([1, 2, 6])) == 2.0


@pytest.mark.parametrize("tail", [1.2, 1.8, 3.0])
def test_the_tail_of_a_pareto_law(tail: float):
    drawn = 5 * (1 + np.random.default_rng(2).pareto(tail, 500_000))
    assert tail_exponent(drawn) == pytest.approx(tail, rel=0.05)


def test_the_skew_of_equal_and_of_single_keys():
    assert zipf_exponent(np.arange(100) % 10) == pytest.approx(0, abs=1e-6)
    assert zipf_exponent(np.zeros(10, dtype=np.int64), among=5) == pytest.approx(20)


def test_skyline_share_and_correlation():
    points = np.array([[0.0, 3.0], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    assert skyline_share(points) == 0.75
    assert skyline_share(points[:0]) == 0.0
    x = np.arange(10.0)
    assert mean_correlation(np.column_stack([x, 2 * x, -x])) == pytest.approx(-1 / 3)


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: counts(np.arange(5), 0), "need interval > 0, got interval=0"),
        (lambda: squared_variation(np.zeros(3)), "need values with a mean other than 0, got 3 values"),
        (lambda: autocorrelation(np.ones(3), 3), "need 0 < lags < the number of values, got lags=3 of 3 values"),
        (lambda: peak_to_mean(np.zeros(3)), "need counts that are not all 0, got 3 intervals"),
        (lambda: delay_quantiles(np.arange(0), np.arange(0), [0.5]), "need at least one tuple"),
        (lambda: tail_exponent(np.ones(10), 1.0), "need 0 < share < 1, got share=1.0"),
        (lambda: tail_exponent(np.ones(1_000)), "need positive values that differ"),
        (lambda: zipf_exponent(np.zeros(5, dtype=np.int64)), "need two keys or more, and all that occur, got among=1"),
        (lambda: zipf_exponent(np.arange(5), among=4), "got among=4 with 5 occurring"),
        (lambda: mean_correlation(np.zeros((5, 1))), "need two rows and two columns or more"),
    ],
)
def test_what_cannot_be_estimated_is_refused(ask, complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        ask()
