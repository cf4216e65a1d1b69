from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting.pid import FALLBACK, Gains, Pid, PidState
from skypane.types import ConfigError


def test_equation_3_by_hand():
    """Errors 0.2, then -0.1: steps 0.5 x 0.2 + 0.1 x 0.2 = 0.12, and -0.05 + 0.1 x 0.1 - 0.2 x 0.3 = -0.1."""
    pid, gains = Pid(setpoint=0.9), Gains(kp=0.5, ki=0.1, kd=0.2)
    first = pid.step(PidState(), gains, 0.7)
    assert first.alpha == pytest.approx(1.12)
    assert first.total == pytest.approx(0.2)
    second = pid.step(first, gains, 1.0)
    assert second.alpha == pytest.approx(1.02)
    assert second.total == pytest.approx(0.1)
    assert second.last == pytest.approx(-0.1)


def test_too_slow_lowers_alpha_and_too_fast_raises_it():
    assert Pid().step(PidState(), FALLBACK, 1.5).alpha < 1 < Pid().step(PidState(), FALLBACK, 0.3).alpha


@pytest.mark.parametrize("rho", [math.nan, -0.1])
def test_a_utilisation_that_is_none_is_not_measured(rho: float):
    state = PidState(alpha=0.7, total=-1.0, last=-0.2)
    assert Pid().step(state, FALLBACK, rho) == state


def test_an_infinite_utilisation_is_the_largest_that_is_accepted():
    pid = Pid(rho_cap=2.0)
    assert pid.step(PidState(), FALLBACK, math.inf) == pid.step(PidState(), FALLBACK, 2.0)


gains = st.builds(Gains, kp=st.floats(0, 5), ki=st.floats(0, 2), kd=st.floats(0, 5))


@given(gains, st.lists(st.floats(0, 10), max_size=30))
def test_alpha_and_its_steps_stay_within_bounds(gains, measured):
    pid, state = Pid(), PidState()
    for rho in measured:
        after = pid.step(state, gains, rho)
        assert pid.lowest <= after.alpha <= pid.highest
        assert abs(after.alpha - state.alpha) <= pid.most_step + 1e-12
        state = after


@given(st.floats(1.0, 3.0), st.integers(1, 500))
def test_errors_that_alpha_can_do_nothing_about_are_not_summed(rho, intervals):
    """Conditional integration: however long the overload, the sum is that of the way to the bound."""
    pid, state = Pid(), PidState()
    bound = None
    for _ in range(intervals):
        state = pid.step(state, FALLBACK, rho)
        if state.alpha == pid.lowest:
            bound = state.total if bound is None else bound
            assert state.total == bound
    back = pid.step(state, Gains(kp=FALLBACK.kp, ki=0.0, kd=0.0), 0.5)
    assert back.alpha > state.alpha


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Pid(setpoint=0.0), "0 < setpoint <= 1"),
    (lambda: Pid(setpoint=1.1), "0 < setpoint <= 1"),
    (lambda: Pid(setpoint=math.nan), "0 < setpoint <= 1"),
    (lambda: Pid(lowest=0.0), "0 < lowest <= 1 <= highest"),
    (lambda: Pid(highest=0.5), "0 < lowest <= 1 <= highest"),
    (lambda: Pid(most_step=0.0), "0 < most_step"),
    (lambda: Pid(rho_cap=1.0), "1 < rho_cap"),
    (lambda: Gains(-0.1, 0.0, 0.0), "not negative, got kp=-0.1"),
    (lambda: Gains(0.1, 0.0, math.nan), "not negative, got kd=nan"),
])  # fmt: skip
def test_what_cannot_control_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
