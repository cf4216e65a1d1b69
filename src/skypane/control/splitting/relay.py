"""Online tuning of a PID: the relay experiment of Astrom and Hagglund (paper 1, section 4.1.2).

During warm-up the controller is a relay: alpha goes up by `step` each interval while rho is below the setpoint, and
down while it is above. The loop then oscillates at its ultimate period Pu; with the amplitude a of rho's oscillation,

    Ku = 4 step / (pi a)

is the ultimate gain, at which the loop would just oscillate. With hysteresis it is larger; neglecting this gives
smaller, safer gains. The gains follow by a tuning rule. The relay drives the step of alpha rather than alpha, because
the step is the PID's output: the integration belongs to the loop that is tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skypane.control.splitting.pid import Gains
from skypane.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class TuningRule:
    """Kp = kp Ku, integral time = ti Pu, derivative time = td Pu."""

    kp: float
    ti: float
    td: float

    def gains(self, ultimate: float, period: float) -> Gains:
        """Return the gains of a loop with ultimate gain `ultimate` and `period` in sampling intervals."""
        kp = self.kp * ultimate
        return Gains(kp=kp, ki=kp / (self.ti * period), kd=kp * self.td * period)


def steadied(gains: Gains, ultimate: float) -> Gains:
    """Return gains that are stable for a loop that is sampled once an interval.

    Tuning rules are made for continuous loops. A sampled loop oscillates from one interval to the next when
    Kp + Ki / 2 + 2 Kd reaches Ku; this sum is limited to half of Ku. Kd is limited to Kp / 4, since a derivative over
    more than a quarter of an interval is noise.
    """
    kd = min(gains.kd, gains.kp / 4)
    part = min(1.0, ultimate / 2 / (gains.kp + gains.ki / 2 + 2 * kd))
    return Gains(kp=part * gains.kp, ki=part * gains.ki, kd=part * kd)


TYREUS_LUYBEN = TuningRule(kp=0.45, ti=2.2, td=0.16)
"""Rule for integrating loops such as this one: a quarter of the overshoot of Ziegler and Nichols."""


@dataclass(frozen=True, slots=True)
class RelayState(JsonState):
    """State of a running experiment.

    up          direction of the relay
    samples     intervals so far
    since       intervals since the relay last switched to up; None before that
    low, high   extremes of the error since then
    periods     lengths of the full oscillations so far
    amplitudes  amplitudes of these oscillations, half the distance between the extremes
    """

    up: bool = True
    samples: int = 0
    since: int | None = None
    low: float = 0.0
    high: float = 0.0
    periods: tuple[int, ...] = ()
    amplitudes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Relay:
    """Settings of the experiment: step of alpha, hysteresis against noise, and when it ends."""

    step: float = 0.1
    hysteresis: float = 0.02
    oscillations: int = 3
    most_samples: int = 40
    rule: TuningRule = TYREUS_LUYBEN

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf or not 0 <= self.hysteresis < math.inf:
            raise ConfigError(f"need step > 0 and hysteresis >= 0, got {self.step} and {self.hysteresis}")
        if self.oscillations < 1 or self.most_samples < 4:
            raise ConfigError(
                f"need oscillations >= 1 and most_samples >= 4, got {self.oscillations} and {self.most_samples}"
            )

    def observe(self, state: RelayState, error: float) -> RelayState:
        """Return the state after an interval with this error (setpoint - rho)."""
        band = -self.hysteresis if state.up else self.hysteresis
        up = error > band
        before, state = (
            state,
            replace(
                state,
                up=up,
                samples=state.samples + 1,
                since=None if state.since is None else state.since + 1,
                low=min(state.low, error),
                high=max(state.high, error),
            ),
        )
        if before.up or not up:
            return state
        if state.since is not None:
            state = replace(
                state,
                periods=(*state.periods, state.since),
                amplitudes=(*state.amplitudes, (state.high - state.low) / 2),
            )
        return replace(state, since=0, low=error, high=error)

    def change(self, state: RelayState) -> float:
        """Return the step of alpha in the next interval."""
        return self.step if state.up else -self.step

    def ended(self, state: RelayState) -> bool:
        """Return whether the experiment is over, with or without gains."""
        return len(state.periods) > self.oscillations or state.samples >= self.most_samples

    def gains(self, state: RelayState) -> Gains | None:
        """Return the gains; None if the loop did not oscillate: rho never crossed the setpoint, or only by noise.

        The first oscillation is ignored, since it includes the approach to the setpoint.
        """
        periods, amplitudes = state.periods[1:], state.amplitudes[1:]
        if not periods:
            return None
        amplitude = sum(amplitudes) / len(amplitudes)
        if amplitude <= self.hysteresis:
            return None
        ultimate = 4 * self.step / (math.pi * amplitude)
        return steadied(self.rule.gains(ultimate, sum(periods) / len(periods)), ultimate)
