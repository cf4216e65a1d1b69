"""The fit of the two-state process: against its closed form, against matrices, and against what it draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.workloads.streams import rate_of, times_of

from skypane.workloads import Map2
from skypane.workloads.estimators import autocorrelation, dispersion, gaps, squared_variation

FITS = st.builds(
    Map2,
    rate=st.floats(0.1, 1e6),
    dispersion=st.floats(150, 1e5),
    ratio=st.floats(1.5, 100),
    burst_share=st.floats(0.05, 0.95),
)


def by_matrices(fit: Map2) -> tuple[float, float, float]:
    """Mean gap, SCV and I of the process as a MAP (D0, D1), with no formula of its own for either."""
    (m_n, m_b), (p, q) = fit.mean_gaps, fit.switching
    stays = np.array([[1 - p, p], [q, 1 - q]])
    d0 = -np.diag([1 / m_n, 1 / m_b])
    inverse = np.linalg.inv(-d0)
    ones = np.ones(2)
    start = np.array([q, p]) / (p + q)  # embedded at arrivals
    mean = start @ inverse @ ones
    variance = 2 * start @ inverse @ inverse @ ones - mean**2
    # sum over k >= 1 of cov(X_0, X_k): the fundamental matrix adds up stays^k - 1 start.
    limit = np.outer(ones, start)
    sum_of_powers = np.linalg.inv(np.eye(2) - stays + limit) - np.eye(2)
    covariances = start @ inverse @ sum_of_powers @ inverse @ ones
    return float(mean), float(variance / mean**2), float((variance + 2 * covariances) / mean**2)


@given(FITS)
def test_the_fit_has_the_rate_and_the_dispersion_requested_in_closed_form(fit: Map2):
    p, q = fit.switching
    assert 0 < p <= 1
    assert 0 < q <= 1
    normal, bursty = fit.mean_gaps
    assert_allclose(normal, fit.ratio * bursty)
    assert_allclose((1 - fit.burst_share) * normal + fit.burst_share * bursty, 1 / fit.rate)
    mean = (q * normal + p * bursty) / (p + q)
    variation = p * q / (p + q) ** 2 * (normal - bursty) ** 2 / mean**2
    assert_allclose(1 + 2 * variation / (p + q), fit.dispersion, rtol=1e-9)


@given(FITS)
def test_the_closed_form_agrees_with_the_matrices(fit: Map2):
    mean, _, index = by_matrices(fit)
    assert_allclose(mean, 1 / fit.rate)
    assert_allclose(index, fit.dispersion, rtol=1e-4)


def test_the_series_of_lags_adds_up_to_the_closed_form():
    fit = Map2(rate=100, dispersion=20)
    (m_n, m_b), (p, q) = fit.mean_gaps, fit.switching
    mean, scv, _ = by_matrices(fit)
    between = fit.burst_share * (1 - fit.burst_share) * (m_n - m_b) ** 2
    correlations = between * (1 - p - q) ** np.arange(1, 2_000) / (scv * mean**2)
    assert_allclose(scv * (1 + 2 * correlations.sum()), 20)


@pytest.mark.parametrize("index", [20, 155, 1_000])
def test_what_is_drawn_has_the_rate_and_dispersion_requested(index: int):
    times = times_of(Map2(1_000, index), 3_000_000)
    assert rate_of(times) == pytest.approx(1_000, rel=0.05)
    measured = dispersion(times)
    assert measured.stable
    assert measured.value == pytest.approx(index, rel=0.15)


def test_severe_bursts_are_drawn_too():
    # A stretch of 250 bursts of 12,000 tuples and the calm between.
    times = times_of(Map2(30_000, 8_000), 6_000_000)
    assert rate_of(times) == pytest.approx(30_000, rel=0.1)
    assert dispersion(times).value == pytest.approx(8_000, rel=0.35)


def test_gaps_have_the_variation_and_the_correlation_of_the_fit():
    fit = Map2(1_000, 20)
    _, scv, _ = by_matrices(fit)
    drawn = gaps(times_of(fit, 1_000_000))
    assert squared_variation(drawn) == pytest.approx(scv, rel=0.03)
    p, q = fit.switching
    expected = (scv - 1) / 2 / scv * (1 - p - q) ** np.arange(1, 4)
    assert_allclose(autocorrelation(drawn, 3), expected, atol=0.02)


def test_bursts_longer_than_a_chunk_continue_in_the_next():
    fit = Map2(1_000, 1_000_000, ratio=100)
    _, leave = fit.switching
    assert leave < 1e-5
    fast = gaps(times_of(fit, 1_000_001)).reshape(-1, 100).mean(axis=1) < 1e6 * np.sqrt(np.prod(fit.mean_gaps))
    # 1,000,000 tuples hold few changes of state; each chunk's end must not add one.
    assert np.count_nonzero(fast[1:] != fast[:-1]) < 30
