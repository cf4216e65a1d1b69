from __future__ import annotations

import math
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting.pid import FALLBACK, Gains, Pid, PidState
from skypane.control.splitting.relay import TYREUS_LUYBEN, Relay, RelayState, TuningRule, steadied
from skypane.types import ConfigError

ZIEGLER_NICHOLS = TuningRule(kp=0.6, ti=0.5, td=0.125)


def oscillated(relay: Relay, errors: list[float]) -> RelayState:
    return reduce(relay.observe, errors, RelayState())


def test_ultimate_gain_and_period_by_hand():
    """A square oscillation of the error, amplitude 0.2, period 4: Ku = 4 x 0.1 / (pi 0.2), Pu = 4."""
    relay = Relay(step=0.1, hysteresis=0.0, oscillations=2, rule=ZIEGLER_NICHOLS)
    state = oscillated(relay, [0.2, 0.2, -0.2, -0.2] * 4)
    ultimate = 4 * 0.1 / (math.pi * 0.2)
    textbook = Gains(kp=0.6 * ultimate, ki=0.6 * ultimate / 2, kd=0.6 * ultimate / 2)  # Ti = Pu / 2, Td = Pu / 8
    assert ZIEGLER_NICHOLS.gains(ultimate, 4) == textbook
    assert relay.gains(state) == steadied(textbook, ultimate)


def test_the_way_to_the_setpoint_is_not_an_oscillation():
    """The first lasts 6 intervals and swings by 0.5, two more 4 by 0.2; then the experiment ends."""
    relay = Relay(step=0.1, hysteresis=0.0, oscillations=2)
    first, other = [0.5, 0.5, 0.5, -0.5, -0.5, -0.5], [0.2, 0.2, -0.2, -0.2]
    state = oscillated(relay, [-0.1, *first, *other, *other])
    assert (state.periods, relay.ended(state)) == ((6, 4), False)
    state = relay.observe(state, 0.2)
    assert (state.periods, relay.ended(state)) == ((6, 4, 4), True)
    ultimate = 4 * 0.1 / (math.pi * 0.2)
    assert relay.gains(state) == steadied(relay.rule.gains(ultimate, 4.0), ultimate)


def test_gains_that_would_ring_from_interval_to_interval_are_lowered():
    """Kd falls to Kp / 4 = 0.15; then 0.6 + 0.3 / 2 + 2 x 0.15 = 1.05 is more than half of Ku = 1."""
    steady = steadied(Gains(kp=0.6, ki=0.3, kd=0.3), 1.0)
    assert (steady.kp, steady.ki, steady.kd) == pytest.approx((0.3 / 1.05, 0.15 / 1.05, 0.075 / 1.05))
    assert steadied(Gains(kp=0.3, ki=0.1, kd=0.05), 1.0) == Gains(kp=0.3, ki=0.1, kd=0.05)


def test_a_loop_that_integrates_is_tuned_softly():
    soft, hard = TYREUS_LUYBEN.gains(1.0, 4.0), ZIEGLER_NICHOLS.gains(1.0, 4.0)
    assert soft.kp < hard.kp
    assert soft.ki < hard.ki / 4


@pytest.mark.parametrize("errors", [[0.3] * 50, [-0.3] * 50, [0.001, -0.001] * 25], ids=["fast", "slow", "noise"])
def test_a_loop_that_does_not_oscillate_has_no_gains_to_find(errors: list[float]):
    relay = Relay(hysteresis=0.02, most_samples=40)
    state = oscillated(relay, errors)
    assert relay.ended(state)
    assert relay.gains(state) is None


def test_the_relay_goes_against_the_error():
    relay = Relay(step=0.1)
    assert relay.change(oscillated(relay, [0.3])) == 0.1
    assert relay.change(oscillated(relay, [-0.3])) == -0.1
    assert relay.change(oscillated(relay, [-0.3, 0.01])) == -0.1, "within the band nothing turns"


@given(slope=st.floats(0.2, 3.0), start=st.floats(0.1, 2.0))
def test_the_gains_found_settle_the_loop_that_they_were_found_on(slope, start):
    """A stage whose rho is slope x alpha, one interval late: tuned, then controlled, it comes to the setpoint."""
    pid, relay, state = Pid(), Relay(most_samples=200), PidState(alpha=start)
    experiment = RelayState()
    while not relay.ended(experiment):
        error = pid.error(slope * state.alpha)
        assert error is not None
        experiment = relay.observe(experiment, error)
        state = PidState(pid.moved(state.alpha, relay.change(experiment)))
    found = relay.gains(experiment)
    assert found is not None
    assert settled(pid, found, slope, state.alpha)


@given(slope=st.floats(0.2, 3.0), start=st.floats(0.1, 2.0))
def test_the_fallback_gains_settle_slopes_up_to_three(slope, start):
    assert settled(Pid(), FALLBACK, slope, start)


def settled(pid: Pid, gains: Gains, slope: float, alpha: float) -> bool:
    state = PidState(alpha)
    rhos = []
    for _ in range(600):
        rho = slope * state.alpha
        rhos.append(rho)
        state = pid.step(state, gains, rho)
    return abs(sum(rhos[-50:]) / 50 - pid.setpoint) < 0.02 and max(rhos[-50:]) - min(rhos[-50:]) < 0.1


@pytest.mark.parametrize("make", [lambda: Relay(step=0), lambda: Relay(hysteresis=-1), lambda: Relay(oscillations=0)])
def test_an_invalid_experiment_is_refused(make):
    with pytest.raises(ConfigError, match="need "):
        make()
