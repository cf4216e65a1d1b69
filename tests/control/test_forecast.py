from __future__ import annotations

import math
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.forecast import Holt, HoltState
from skypane.types import ConfigError


def seen(holt: Holt, values: list[float]) -> HoltState:
    return reduce(holt.observe, values, HoltState())


def test_level_and_trend_by_hand():
    """10, then 14: L = 0.5 x 14 + 0.5 x 10 = 12, T = 0.5 x 2 = 1; then 14: L = 7 + 0.5 x 13 = 13.5, T = 0.75 + 0.5."""
    state = seen(Holt(level=0.5, trend=0.5), [10, 14, 14])
    assert (state.level, state.trend) == pytest.approx((13.5, 1.25))
    assert Holt().forecast(state, 2) == pytest.approx(16.0)


@given(start=st.floats(0, 1e4), slope=st.floats(0, 100), ahead=st.integers(1, 10))
def test_a_line_is_foreseen(start, slope, ahead):
    holt, values = Holt(level=0.8, trend=0.8), [start + slope * at for at in range(100)]
    assert holt.forecast(seen(holt, values), ahead) == pytest.approx(start + slope * (99 + ahead), rel=1e-3, abs=1e-3)


def test_a_rate_is_never_below_zero():
    assert Holt(1.0, 1.0).forecast(seen(Holt(1.0, 1.0), [100, 10]), 5) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_not_learnt(value: float):
    state = seen(Holt(), [5, 6])
    assert Holt().observe(state, value) == state
    assert Holt().forecast(HoltState()) is None


def test_smoothing_lies_between_never_and_at_once():
    with pytest.raises(ConfigError, match=r"smoothing parameters lie from 0 to 1, got trend=1\.5"):
        Holt(trend=1.5)
