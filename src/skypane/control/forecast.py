"""Holt's linear trend: forecast of a rate in k periods (paper 3, section 2.3).

L(t) = a X(t) + (1 - a) (L(t-1) + T(t-1))        level
T(t) = g (L(t) - L(t-1)) + (1 - g) T(t-1)        trend
X^(t + k) = L(t) + k T(t)                        forecast, here never below 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skypane.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class HoltState(JsonState):
    """Level and trend; None before the first observation, whose value is the first level."""

    level: float | None = None
    trend: float = 0.0


@dataclass(frozen=True, slots=True)
class RateAhead(JsonState):
    """A rate in tuples per second that is stated for a time to come, or holds now by a statement, with the reason."""

    rate: float
    because: str


@dataclass(frozen=True, slots=True)
class Holt:
    """Smoothing parameters: `level` is a, `trend` is g; both from 0 (never updated) to 1 (last observation only)."""

    level: float = 0.5
    trend: float = 0.3

    def __post_init__(self) -> None:
        for name in ("level", "trend"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"smoothing parameters lie from 0 to 1, got {name}={getattr(self, name)}")

    def observe(self, state: HoltState, value: float) -> HoltState:
        """Return the state after an observation; values that are not finite are ignored."""
        if not math.isfinite(value):
            return state
        if state.level is None:
            return HoltState(value)
        level = self.level * value + (1 - self.level) * (state.level + state.trend)
        return HoltState(level, self.trend * (level - state.level) + (1 - self.trend) * state.trend)

    def forecast(self, state: HoltState, periods: float = 1) -> float | None:
        """Return the forecast `periods` periods ahead; None before the first observation."""
        return None if state.level is None else max(0.0, state.level + periods * state.trend)
