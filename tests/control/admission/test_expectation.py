"""Every case by hand: periods of ten seconds, rates in rows per second."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from skypane.control.admission.expectation import expectation, expectation_at
from skypane.control.admission.metadata import MetaData

ANY = (7.0, 8.0, 9.0)
RISING, FALLING = (110.0, 120.0, 130.0), (15.0, 5.0, 0.0)

JUMPS = MetaData(min=10, max=100, transition="jump", low_period="60 s", high_period="30 s")
JUMPS_AT_ANY_TIME = MetaData(min=10, max=100, transition="jump")
TREND = MetaData(min=10, max=100, transition="trend")
BURSTS = MetaData(burst_percent=50, burst_peak=100, period="40 s")
"""20 s in bursts of 40: share 0.5, relaxation 0.5 x 0.5 x 40 s = 10 s."""
LONG_BURSTS = MetaData(burst_percent=50, burst_peak=100, period="60 s")
"""On and off for 30 s each on average: the distance to the mean falls by e in 15 s."""


@pytest.mark.parametrize(("meta", "rates", "forecasts", "rate"), [
    # Without an expectation or a maximum nothing is expected.
    (MetaData(), (), ANY, None),
    (MetaData(average=5, min=1), (), ANY, None),
    # What is expected overrides the forecast, and the most that comes does where no more is reported.
    (MetaData(expected=5, max=20), (1.0,), ANY, 5),
    (MetaData(max=20), (1.0,), ANY, 20),
    # A jump is expected as soon as it falls into the next periods.
    (JUMPS, (100.0, 100.0, *[10.0] * 1), ANY, 10),  # 10 s of 60: high again after 50 s, k = 3 periods end in 30
    (JUMPS, (100.0, 100.0, *[10.0] * 3), ANY, 10),  # in 30 s, which is when they end
    (JUMPS, (100.0, 100.0, *[10.0] * 4), ANY, 100),
    (JUMPS, (100.0, 100.0, *[10.0] * 6), ANY, 100),
    # A stream that is high is expected to be so in the next period.
    (JUMPS, (10.0, 100.0), ANY, 100),
    # Not knowing when it jumps is expecting it.
    (JUMPS_AT_ANY_TIME, (10.0, 10.0), ANY, 100),
    (JUMPS, (), ANY, 100),  # never seen
    (JUMPS, (10.0, 10.0), ANY, 100),  # low since before it was seen
    # A trend turns round at its bounds.
    (TREND, (80.0,), (90.0, 100.0, 110.0), 100),
    (TREND, (100.0,), RISING, 90),
    (TREND, (20.0,), FALLING, 20),
    (TREND, (), ANY, 100),
    # Bursts tend from where they are to their mean.
    (BURSTS, (), ANY, 50),
    (BURSTS, (100.0,), ANY, pytest.approx(50 + 50 * math.exp(-1))),  # after one period
    (BURSTS, (0.0,), ANY, pytest.approx(50 - 50 * math.exp(-3))),  # after three
    (LONG_BURSTS, (100.0,), ANY, pytest.approx(50 + 50 * math.exp(-2 / 3))),
    (LONG_BURSTS, (0.0,), ANY, pytest.approx(50 - 50 * math.exp(-2))),
    (MetaData(burst_percent=20, burst_peak=100), (100.0,), ANY, 20),
    (MetaData(burst_peak=100, min=40), (40.0,), ANY, 100),
])  # fmt: skip
def test_the_rate_within_the_next_periods(
    meta: MetaData, rates: Sequence[float], forecasts: Sequence[float], rate: float | None
):
    assert expectation(meta, rates, forecasts, 10.0) == rate


@pytest.mark.parametrize(("meta", "rates", "forecasts", "rate"), [
    # The rate follows the phases.
    (JUMPS, (100.0, *[10.0] * 1), ANY, 10),  # the middle of the third period is 35 s into the 60 s of the low phase
    (JUMPS, (100.0, *[10.0] * 3), ANY, 10),  # 55 s
    (JUMPS, (100.0, *[10.0] * 4), ANY, 100),  # 65 s: 5 s into the 30 s of the high phase
    (JUMPS, (100.0, *[10.0] * 6), ANY, 100),  # 85 s
    (JUMPS, (100.0, *[10.0] * 7), ANY, 10),  # 95 s: low again
    # A stream that is high now may be low then: 35, 55, 85, 95 s into 30 and 60.
    (JUMPS, (10.0, *[100.0] * 1), ANY, 10),
    (JUMPS, (10.0, *[100.0] * 3), ANY, 10),
    (JUMPS, (10.0, *[100.0] * 6), ANY, 10),
    (JUMPS, (10.0, *[100.0] * 7), ANY, 100),
    # The highest rate is expected where no jump has been seen.
    (JUMPS, (), ANY, 100),
    (JUMPS, (10.0, 10.0), ANY, 100),
    (JUMPS_AT_ANY_TIME, (100.0, 10.0), ANY, 100),
    # A trend is expected where it will be, a burst to have faded.
    (TREND, (100.0,), RISING, 70),
    (TREND, (20.0,), FALLING, 20),
    (LONG_BURSTS, (100.0,), ANY, pytest.approx(50 + 50 * math.exp(-2))),
    (LONG_BURSTS, (0.0,), ANY, expectation(LONG_BURSTS, (0.0,), ANY, 10.0)),
])  # fmt: skip
def test_the_rate_at_the_end_of_the_next_periods(
    meta: MetaData, rates: Sequence[float], forecasts: Sequence[float], rate: float
):
    assert expectation_at(meta, rates, forecasts, 10.0) == rate
