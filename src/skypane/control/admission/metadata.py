"""Meta-data of a stream, known before it is read: the ten characteristics of paper 3, section 2.4, figure 4.

    max  ----  ___         ___      transition: jump (here) or trend
              |   |       |   |
    avg  - - -|- -|- - - -|- -|- -  expected ~ average
    min  _____|   |_______|   |___
         low   high                 low period, high period; together the period

A bursty stream is at its peak for a percentage of the time, in periods of unknown length.

`changes` is not in the paper: changes of the rate whose time is known (rate_changes.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from skypane.control.admission.rate_changes import RateSchedule
from skypane.naming import instead
from skypane.types import ConfigError, Duration, Length, micros

Transition = Literal["jump", "trend"]

_RATES = ("min", "max", "expected", "average", "burst_peak")
_TIMES = ("period", "low_period", "high_period")


@dataclass(frozen=True, slots=True)
class MetaData:
    """Meta-data that a user declares for a stream; None is unknown. Rates in rows per second.

    min, max                bounds of the rate
    expected                the rate to expect from now on; it overrides the forecast
    average                 the mean rate, used until rates have been observed
    period                  time after which the rate repeats its behaviour
    low_period, high_period time that the rate stays near `min`, near `max`
    transition              change between the two: "jump" (at once) or "trend"
    burst_percent           share of time in bursts, 0 to 100
    burst_peak              the rate in bursts
    changes                 changes at known times: "x10 at 09:30 Europe/Zurich", a text or several; kept as a RateSchedule

    Raises ConfigError that names the field, its value and the remedy.
    """

    min: float | None = None
    max: float | None = None
    expected: float | None = None
    average: float | None = None
    period: Duration | None = None
    low_period: Duration | None = None
    high_period: Duration | None = None
    transition: Transition | None = None
    burst_percent: float | None = None
    burst_peak: float | None = None
    changes: RateSchedule | str | Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in _RATES:
            _check_rate(name, getattr(self, name))
        for name in _TIMES:
            given = getattr(self, name)
            if given is not None and micros(given, name) <= 0:
                raise ConfigError(f"{name} must be longer than 0, got {given!r}")
            object.__setattr__(self, name, None if given is None else micros(given, name))  # parsed only once
        if self.transition not in {None, *get_args(Transition)}:
            raise ConfigError(
                f"transition must be one of {', '.join(get_args(Transition))}, got {self.transition!r}; "
                "leave it out if it is unknown"
            )
        if self.burst_percent is not None and not (_is_number(self.burst_percent) and 0 <= self.burst_percent <= 100):
            raise ConfigError(f"burst_percent is a share of time, need 0 to 100, got {self.burst_percent!r}")
        object.__setattr__(self, "changes", RateSchedule.of(self.changes))
        self._check_order()

    def _check_order(self) -> None:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ConfigError(f"need min <= max, got min={self.min}, max={self.max}; swap them")
        for name in ("expected", "average"):
            rate = getattr(self, name)
            if rate is not None and not (self.min or 0) <= rate <= (math.inf if self.max is None else self.max):
                raise ConfigError(f"{name} must lie from min to max, {self.min} to {self.max}, got {rate}")
        low, high, period = self.seconds("low_period"), self.seconds("high_period"), self.seconds("period")
        if period is not None and (low or 0) + (high or 0) > period:
            raise ConfigError(
                f"low_period and high_period lie within the period of {period} s, got {low} s and {high} s; "
                "leave one of them out"
            )

    @classmethod
    def of(cls, given: object, field: str = "meta") -> MetaData:
        """Return the meta-data of a mapping, as in YAML; raise ConfigError, naming `field`, if it is invalid."""
        known = [item.name for item in fields(cls)]
        if not isinstance(given, Mapping):
            raise ConfigError(f"{field} must be a mapping such as max: 500, got {given!r}")
        for name in given:
            if name not in known:
                raise ConfigError(f"{field}: unknown characteristic {name!r} of a stream; {instead(str(name), known)}")
        try:
            return cls(**given)
        except ConfigError as error:
            raise ConfigError(f"{field}: {error}") from None

    def seconds(self, name: str) -> float | None:
        """Return the duration with this name in seconds, or None."""
        length = getattr(self, name)
        return None if length is None else micros(length, name) / 1e6

    @property
    def schedule(self) -> RateSchedule:
        """The changes at known times."""
        return RateSchedule.of(self.changes)

    @property
    def phases(self) -> tuple[float, float] | None:
        """Seconds near `min` and near `max`; half each if only the period is known; None if unknown."""
        low, high, period = self.seconds("low_period"), self.seconds("high_period"), self.seconds("period")
        if period is not None:
            if low is None:
                low = period / 2 if high is None else period - high
            high = period - low if high is None else high
        return None if low is None or high is None else (low, high)


def averages(declared: Iterable[MetaData], histories: Iterable[Sequence[float]]) -> MetaData:
    """Return the defaults of a stream without meta-data: averages over the current streams.

    Rates are averages of the observed histories; all other characteristics are averages of the declared ones.
    """
    seen = [history for history in histories if history]
    known = list(declared)
    period, low, high = (_mean(meta.seconds(name) for meta in known) for name in _TIMES)
    transitions: Counter[Transition] = Counter(meta.transition for meta in known if meta.transition is not None)
    common: Transition | None = next((name for name, _ in sorted(transitions.items(), key=lambda one: -one[1])), None)
    lowest, highest = _mean(min(history) for history in seen), _mean(max(history) for history in seen)
    average = _mean(_mean(history) for history in seen)
    return MetaData(
        min=lowest,
        max=highest,
        # Rounding must not move it beyond a bound that it is equal to.
        average=None if average is None else min(max(average, lowest or 0.0), math.inf if highest is None else highest),
        # Each mean may be over other streams, but the period must not be shorter than its parts.
        period=None if period is None else _length(max(period, (low or 0) + (high or 0))),
        low_period=_length(low),
        high_period=_length(high),
        transition=common,
        burst_percent=_mean(meta.burst_percent for meta in known),
        burst_peak=_mean(meta.burst_peak for meta in known),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _length(seconds: float | None) -> Length | None:
    return None if seconds is None else Length(math.ceil(seconds * 1e6))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_rate(name: str, rate: Any) -> None:
    if rate is not None and not (_is_number(rate) and 0 <= cast("float", rate) < math.inf):
        raise ConfigError(f"{name} is a rate in rows per second, need a number of at least 0, got {rate!r}")
