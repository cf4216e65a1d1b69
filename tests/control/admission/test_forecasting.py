from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.forecasting import CANDIDATES, HoltForecaster, smooth
from skypane.control.forecast import Holt, HoltState
from skypane.types import ConfigError

RATES = st.lists(st.floats(0, 1e4), max_size=12)


def states(holt: Holt, rates: list[float]) -> tuple[HoltState, float]:
    """What one stream's Holt makes of rates, one at a time, and its squared errors on the way."""
    state, error = HoltState(), 0.0
    for rate in rates:
        if state.level is not None:
            error += (rate - state.level - state.trend) ** 2
        state = holt.observe(state, rate)
    return state, error


@given(histories=st.lists(RATES, min_size=1, max_size=4))
def test_all_streams_at_once_are_smoothed_as_one_by_one(histories: list[list[float]]):
    longest = max(1, *map(len, histories))
    table = np.array([[math.nan] * (longest - len(rates)) + rates for rates in histories])
    found = smooth(table, CANDIDATES)
    for row, rates in enumerate(histories):
        for at, holt in enumerate(CANDIDATES):
            state, error = states(holt, rates)
            level = math.nan if state.level is None else state.level
            got = (found.levels[row, at], found.trends[row, at], found.errors[row, at])
            assert np.allclose(got, (level, state.trend, error), rtol=1e-6, atol=1e-3, equal_nan=True)


@given(rates=st.lists(st.floats(0, 1e4), min_size=8, max_size=20), periods=st.integers(1, 5))
def test_the_parameters_are_those_that_would_have_forecast_the_history_best(rates: list[float], periods: int):
    best = min(CANDIDATES, key=lambda holt: states(holt, rates)[1])
    (found,) = HoltForecaster().forecast(np.array([rates]), periods)
    worst = max(1.0, states(best, rates)[1])
    fitting = [holt for holt in CANDIDATES if states(holt, rates)[1] <= states(best, rates)[1] + 1e-9 * worst]
    expected = [
        [holt.forecast(states(holt, rates)[0], ahead) or 0.0 for ahead in range(1, periods + 1)] for holt in fitting
    ]
    assert any(np.allclose(found, row, rtol=1e-6, atol=1e-3) for row in expected)


def test_noise_is_smoothed_away_and_a_trend_is_followed():
    rng = np.random.default_rng(1)
    noise, line = 100 + rng.normal(0, 10, 32), 10.0 * np.arange(32)
    flat, rising = HoltForecaster().forecast(np.array([noise, line]), 3)
    assert flat == pytest.approx([100, 100, 100], abs=6)
    assert rising == pytest.approx([320, 330, 340], rel=0.01)


def test_a_stream_that_was_never_seen_has_no_forecast_and_one_that_falls_none_below_zero():
    never, falling = HoltForecaster().forecast(np.array([[math.nan] * 3, [200.0, 100.0, 0.0]]), 4)
    assert np.isnan(never).all()
    assert falling.min() == 0


def test_few_observations_are_not_fitted():
    rates = [100.0, 0.0, 100.0, 0.0]
    (found,) = HoltForecaster().forecast(np.array([rates]), 1)
    assert found[0] == pytest.approx(Holt().forecast(states(Holt(), rates)[0]))
    with pytest.raises(ConfigError, match="at least one candidate"):
        HoltForecaster(candidates=())
