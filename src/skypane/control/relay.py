"""Tuning of a PID while it runs: the relay experiment of Astrom and Hagglund (paper 1, section 4.1.2).

During warm-up the controller is a relay: alpha goes up by `step` each interval while rho is below the setpoint, and
down while it is above. The loop then oscillates at its ultimate period Pu; with the amplitude a of rho's oscillation,

    Ku = 4 step / (pi a)

is the gain at which it would just not settle (with hysteresis it is more: leaving that out errs on the soft side). The gains follow by a tuning rule. What the relay drives is the step of
alpha, not alpha itself, because that is what the PID's output is: the integration belongs to the loop that is tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skypane.control.pid import Gains
from skypane.control.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Rule:
    """Kp = kp Ku, integral time = ti Pu, derivative time = td Pu."""

    kp: float
    ti: float
    td: float

    def gains(self, ultimate: float, period: float) -> Gains:
        """Return the gains of a loop with ultimate gain `ultimate` and `period` in sampling intervals."""
        kp = self.kp * ultimate
        return Gains(kp=kp, ki=kp / (self.ti * period), kd=kp * self.td * period)


def steadied(gains: Gains, ultimate: float) -> Gains:
    """Return gains that are sound for a loop that is looked at once an interval.

    Tuning rules are made for continuous loops. A sampled one rings from one interval to the next when
    Kp + Ki / 2 + 2 Kd reaches Ku: half of that is kept, and a derivative over more than a quarter interval is noise.
    """
    kd = min(gains.kd, gains.kp / 4)
    part = min(1.0, ultimate / 2 / (gains.kp + gains.ki / 2 + 2 * kd))
    return Gains(kp=part * gains.kp, ki=part * gains.ki, kd=part * kd)


ZIEGLER_NICHOLS = Rule(kp=0.6, ti=0.5, td=0.125)
TYREUS_LUYBEN = Rule(kp=0.45, ti=2.2, td=0.16)
"""For loops that integrate, as this one does: a quarter of the overshoot of Ziegler and Nichols."""


@dataclass(frozen=True, slots=True)
class RelayState(JsonState):
    """An experiment under way.

    up          the relay's direction
    samples     intervals so far
    since       intervals since the relay last turned up; None before it did
    low, high   extremes of the error since then
    periods     lengths of the full oscillations so far
    amplitudes  half the distance between the extremes of each
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
    """The experiment: how far alpha moves in an interval, the band in which noise turns nothing, when it ends."""

    step: float = 0.1
    hysteresis: float = 0.02
    oscillations: int = 3
    most_samples: int = 40
    rule: Rule = TYREUS_LUYBEN

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf or not 0 <= self.hysteresis < math.inf:
            raise ConfigError(f"need step > 0 and hysteresis >= 0, got {self.step} and {self.hysteresis}")
        if self.oscillations < 1 or self.most_samples < 4:
            raise ConfigError(
                f"need oscillations >= 1 and most_samples >= 4, got {self.oscillations} and {self.most_samples}"
            )

    def observe(self, state: RelayState, error: float) -> RelayState:
        """Return the experiment after an interval with this error (setpoint - rho)."""
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
        """Return by how much alpha moves in the next interval."""
        return self.step if state.up else -self.step

    def ended(self, state: RelayState) -> bool:
        """Whether the experiment is over, with gains or without."""
        return len(state.periods) > self.oscillations or state.samples >= self.most_samples

    def gains(self, state: RelayState) -> Gains | None:
        """Return the gains; None if the loop did not oscillate: rho never crossed the setpoint, or only in noise.

        The first oscillation is left out: it holds the way from wherever the loop was to the setpoint.
        """
        periods, amplitudes = state.periods[1:], state.amplitudes[1:]
        if not periods:
            return None
        amplitude = sum(amplitudes) / len(amplitudes)
        if amplitude <= self.hysteresis:
            return None
        ultimate = 4 * self.step / (math.pi * amplitude)
        return steadied(self.rule.gains(ultimate, sum(periods) / len(periods)), ultimate)
