"""When micro-batches begin: the arguments of start(), as Spark's trigger() takes them."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

from skypane.control.pace import Pace
from skypane.types import ConfigError, micros

AUTO: Final = "auto"
"""The default trigger: a batch begins when it can complete a window."""

Trigger: TypeAlias = dict[str, Any]
"""The argument of Spark's trigger(), by name."""


def trigger_of(trigger: str | None, processing_time: str | None, available_now: bool | None) -> Trigger | None:
    """Return the arguments of Spark's trigger(), None if batches begin by the pace of the stream (control/pace.py).

    Raises ConfigError if more than one of the three is given, or if it cannot be read.
    """
    values = {"trigger": trigger, "processingTime": processing_time, "availableNow": available_now}
    given = [f"{name}={value!r}" for name, value in values.items() if value is not None]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} each say when batches begin: give one of them")
    if available_now is not None and available_now is not True:
        raise ConfigError(f"availableNow must be True, got {available_now!r}; leave it out to run until stopped")
    if available_now:
        return {"availableNow": True}
    if processing_time is not None:
        return _interval(processing_time, "processingTime")
    if trigger is None or trigger == AUTO:
        return None
    if str(trigger).lower().replace("_", "").replace(" ", "") == "availablenow":
        return {"availableNow": True}
    return _interval(trigger, "trigger", " or 'auto' or 'available now'")


def paced(when: Trigger | None) -> Pace | None:
    """Return the policy that decides the pauses between batches; None if Spark's trigger does."""
    return Pace() if when is None else None


def pace_of(when: Trigger | None) -> float:
    """Return the seconds that Spark's trigger leaves between batches: 0 without one, infinite for "available now"."""
    if when is None:
        return 0.0
    return micros(str(when["processingTime"])) / 1e6 if "processingTime" in when else math.inf


def _interval(text: str, argument: str, other: str = "") -> Trigger:
    """Return an interval as Spark reads it; raise ConfigError, naming the argument, if it is none.

    other  what else may be written there, for errors
    """
    if not isinstance(text, str):
        raise ConfigError(f"{argument} must be a text such as '5 seconds'{other}, got {text!r}")
    try:
        interval = micros(text, argument)
    except ConfigError as error:
        raise ConfigError(f"{error};{other}" if other else str(error)) from None
    if interval < 0:
        raise ConfigError(f"{argument} must not be negative, got {text!r}")
    return {"processingTime": f"{interval // 1_000} milliseconds"}
