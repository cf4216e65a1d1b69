"""Discrete PID controller of alpha with anti-windup (paper 1, section 4.1.2, equation 3).

    e(t)       = setpoint - rho(t)
    step(t)    = Kp e(t) + Ki sum e + Kd (e(t) - e(t-1))
    alpha(t)   = alpha(t-1) + step(t)

The step is bounded, and alpha is clamped. An error is added to the sum only if neither bound is active, or if the error
leads away from it (conditional integration). So the sum of a stage that cannot reach the setpoint, however much it
splits, does not grow and does not delay the reaction when the load falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skypane.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Gains(JsonState):
    """Kp, Ki, Kd per sampling interval, from errors of rho to steps of alpha."""

    kp: float
    ki: float
    kd: float

    def __post_init__(self) -> None:
        for name in ("kp", "ki", "kd"):
            gain = getattr(self, name)
            if not 0 <= gain < math.inf:
                raise ConfigError(f"gains must be finite and not negative, got {name}={gain}")


FALLBACK = Gains(kp=0.25, ki=0.01, kd=0.05)
"""Gains if tuning finds none: slow, and stable for all curves rho(alpha) with a slope of up to 3 (docs/control.md)."""


@dataclass(frozen=True, slots=True)
class PidState(JsonState):
    """alpha, the sum of errors, and the last error (None before the first)."""

    alpha: float = 1.0
    total: float = 0.0
    last: float | None = None


@dataclass(frozen=True, slots=True)
class Pid:
    """Setpoint of rho, bounds of alpha and of one step, and `rho_cap`, to which larger values of rho are cut."""

    setpoint: float = 0.9
    lowest: float = 0.02
    highest: float = 8.0
    most_step: float = 0.5
    rho_cap: float = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.setpoint <= 1:
            raise ConfigError(f"need 0 < setpoint <= 1 (a utilisation factor), got setpoint={self.setpoint}")
        if not 0 < self.lowest <= 1 <= self.highest < math.inf:
            raise ConfigError(f"need 0 < lowest <= 1 <= highest < infinity, got {self.lowest} and {self.highest}")
        if not 0 < self.most_step < math.inf:
            raise ConfigError(f"need 0 < most_step < infinity, got most_step={self.most_step}")
        if not 1 < self.rho_cap < math.inf:
            raise ConfigError(f"need 1 < rho_cap < infinity, got rho_cap={self.rho_cap}")

    def error(self, rho: float) -> float | None:
        """Return e, with rho cut to the cap; None if rho is NaN or negative."""
        return None if math.isnan(rho) or rho < 0 else self.setpoint - min(rho, self.rho_cap)

    def step(self, state: PidState, gains: Gains, rho: float) -> PidState:
        """Return the state after a measurement of rho; NaN and negative values do not change it."""
        error = self.error(rho)
        if error is None:
            return state
        change = 0.0 if state.last is None else error - state.last
        total = state.total + error
        wanted = gains.kp * error + gains.ki * total + gains.kd * change
        alpha = self.moved(state.alpha, wanted)
        stopped = not math.isclose(alpha, state.alpha + wanted, abs_tol=1e-12)
        if stopped and (wanted > 0) == (error > 0):
            total = state.total
        return replace(state, alpha=alpha, total=total, last=error)

    def moved(self, alpha: float, step: float) -> float:
        """Return alpha after a step, with both cut to their bounds."""
        step = min(max(step, -self.most_step), self.most_step)
        return min(max(alpha + step, self.lowest), self.highest)
