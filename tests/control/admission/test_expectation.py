"""Every case by hand: periods of ten seconds, rates in rows per second."""

from __future__ import annotations

import math

import pytest

from skypane.control.admission.expectation import expectation
from skypane.control.admission.metadata import MetaData


def expected(meta: MetaData, rates=(), forecasts=(7.0, 8.0, 9.0)) -> float | None:
    return expectation(meta, rates, forecasts, 10.0)


def test_without_an_expectation_or_a_maximum_nothing_is_expected():
    assert expected(MetaData()) is None
    assert expected(MetaData(average=5, min=1)) is None


def test_what_is_expected_overrides_the_forecast_and_the_most_that_comes_does_where_no_more_is_reported():
    assert expected(MetaData(expected=5, max=20), (1.0,)) == 5
    assert expected(MetaData(max=20), (1.0,)) == 20


JUMPS = MetaData(min=10, max=100, transition="jump", low_period="60 s", high_period="30 s")


@pytest.mark.parametrize(
    ("low_for", "rate"),
    [
        (1, 10),  # 10 s of 60: high again after 50 s, k = 3 periods end in 30
        (3, 10),  # in 30 s, which is when they end
        (4, 100),
        (6, 100),
    ],
)
def test_a_jump_is_expected_as_soon_as_it_falls_into_the_next_periods(low_for: int, rate: float):
    assert expected(JUMPS, (100.0, 100.0, *[10.0] * low_for)) == rate


def test_a_stream_that_is_high_is_expected_to_be_so_in_the_next_period():
    assert expected(JUMPS, (10.0, 100.0)) == 100


def test_not_knowing_when_it_jumps_is_expecting_it():
    assert expected(MetaData(min=10, max=100, transition="jump"), (10.0, 10.0)) == 100
    assert expected(JUMPS) == 100  # never seen
    assert expected(JUMPS, (10.0, 10.0)) == 100  # low since before it was seen


def test_a_trend_turns_round_at_its_bounds():
    trend = MetaData(min=10, max=100, transition="trend")
    assert expected(trend, (80.0,), (90.0, 100.0, 110.0)) == 100
    assert expected(trend, (100.0,), (110.0, 120.0, 130.0)) == 90
    assert expected(trend, (20.0,), (15.0, 5.0, 0.0)) == 20
    assert expected(trend) == 100


def test_bursts_tend_from_where_they_are_to_their_mean():
    """20 s in bursts of 40: share 0.5, relaxation 0.5 x 0.5 x 40 s = 10 s."""
    bursts = MetaData(burst_percent=50, burst_peak=100, period="40 s")
    assert expected(bursts) == 50
    assert expected(bursts, (100.0,)) == pytest.approx(50 + 50 * math.exp(-1))  # after one period
    assert expected(bursts, (0.0,)) == pytest.approx(50 - 50 * math.exp(-3))  # after three
    assert expected(MetaData(burst_percent=20, burst_peak=100), (100.0,)) == 20
    assert expected(MetaData(burst_peak=100, min=40), (40.0,)) == 100
