"""Checks of numbers in configs, with uniform error messages."""

from __future__ import annotations

import math
from typing import Any, Final

from skypane.types import ConfigError, Duration, micros

SECOND: Final = 1_000_000
"""Microseconds in a second."""


def positive(name: str, value: float) -> None:
    """Raise ConfigError unless `value` is finite and above 0."""
    if not (0 < value < math.inf):
        raise ConfigError(f"need 0 < {name} < infinity, got {name}={value}")


def at_least(name: str, low: int, value: Any) -> None:
    """Raise ConfigError unless `value` is a whole number >= `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ConfigError(f"need a whole number {name} >= {low}, got {name}={value}")


def between(name: str, low: float, high: float, value: float) -> None:
    """Raise ConfigError unless low <= `value` <= high."""
    if not low <= value <= high:
        raise ConfigError(f"need {low} <= {name} <= {high}, got {name}={value}")


def seconds(name: str, length: Duration) -> float:
    """Return a duration in seconds; raise ConfigError unless it is above 0."""
    converted = micros(length, name)
    if converted <= 0:
        raise ConfigError(f"need {name} > 0, got {name}={length!r}")
    return converted / SECOND
