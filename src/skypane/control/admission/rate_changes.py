"""Changes of a rate that are known beforehand: "x10 at 09:30 Europe/Zurich", "500 rows/s at 2026-03-02T09:30:00+01:00".

A change holds until the next one. `xN` is N times the rate without changes, which is x1; `N rows/s` is a rate by itself.
A time of day with a zone returns every day, a date and time with an offset from UTC comes once. Both are times of the
clock by which rows arrive, not event times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skypane.types import ConfigError

_CHANGE = re.compile(r"\s*(?:x(?P<factor>\S+)|(?P<rate>\S+)\s+rows/s)\s+at\s+(?P<time>\S.*?)\s*")
_DAILY = re.compile(r"(?P<time>\d{1,2}:\d{2}(?::\d{2})?)\s*(?P<zone>\S.*)?")
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):(?P<minutes>[0-5]\d)")
_EXAMPLES = "'x10 at 09:30 Europe/Zurich' (every day) or '500 rows/s at 2026-03-02T09:30:00+01:00' (once)"


@dataclass(frozen=True, slots=True)
class RateChange:
    """One change.

    text       as a user writes it
    value      the factor, or the rate in rows per second
    is_factor  which of the two
    at         seconds since the epoch; None for a daily change
    clock      time of day, and `zone`, its time zone; None for a change that comes once
    """

    text: str
    value: float
    is_factor: bool
    at: float | None = None
    clock: time | None = None
    zone: tzinfo | None = None

    @classmethod
    def of(cls, text: str) -> RateChange:
        """Return the change of a text; raise ConfigError that names the text, what is wrong with it, and the remedy."""
        found = _CHANGE.fullmatch(text)
        if found is None:
            raise ConfigError(f"{text!r} is not a change of a rate; write {_EXAMPLES}")
        is_factor = found["factor"] is not None
        value = _value(text, found["factor"] or found["rate"], is_factor=is_factor)
        daily = _DAILY.fullmatch(found["time"])
        if daily is None:
            return cls(text, value, is_factor, at=_instant(text, found["time"]))
        return cls(text, value, is_factor, clock=_clock(text, daily["time"]), zone=_zone(text, daily["zone"]))

    def times(self, begin: float, end: float) -> list[float]:
        """Return when the change comes, up to `end`, and at least the last time before `begin`; seconds since the epoch."""
        if self.clock is None or self.zone is None:
            return [] if self.at is None or self.at > end else [self.at]
        first, last = (datetime.fromtimestamp(at, self.zone).date() for at in (begin, end))
        days = [first + timedelta(days=day) for day in range(-1, (last - first).days + 1)]
        found = [datetime.combine(day, self.clock, self.zone).timestamp() for day in days]
        return [at for at in found if at <= end]


class Highest(NamedTuple):
    """The highest value of a span of time, and the text and time of the change that brings it; "": it was in force before."""

    value: float | None
    change: str = ""
    at: float = math.nan


@dataclass(frozen=True, slots=True)
class RateSchedule:
    """All changes of one stream.

    Raises ConfigError for factors beside rates, and for daily changes that all have one value, which then never changes.
    """

    changes: tuple[RateChange, ...] = ()

    def __post_init__(self) -> None:
        texts = ", ".join(repr(one.text) for one in self.changes)
        if len({one.is_factor for one in self.changes}) > 1:
            raise ConfigError(f"{texts} are factors and rates; write all of them as xN, or all as N rows/s")
        if self.changes and all(one.clock is not None for one in self.changes) and len(self._values) == 1:
            end = f"{'x1' if self.is_factor else '20 rows/s'} at 17:00 Europe/Zurich"
            raise ConfigError(f"{texts} holds all day, every day; add the daily change that ends it, such as {end!r}")

    @classmethod
    def of(cls, given: object) -> RateSchedule:
        """Return the schedule of one text or several; raise ConfigError for anything else."""
        if isinstance(given, RateSchedule):
            return given
        texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
        for text in texts:
            if not isinstance(text, str):
                raise ConfigError(f"changes are texts such as {_EXAMPLES}, got {given!r}")
        return cls(tuple(map(RateChange.of, texts)))

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.changes]

    @property
    def is_factor(self) -> bool:
        """Whether the values are factors."""
        return bool(self.changes) and self.changes[0].is_factor

    @property
    def _values(self) -> set[float]:
        return {one.value for one in self.changes}

    def means(self, ends: Sequence[float]) -> list[float]:
        """Return the mean factor of each period between consecutive times, which ascend; only for factors."""
        coming = self._coming(ends[0], ends[-1]) if ends else []
        return [_mean(coming, begin, end) for begin, end in pairwise(ends)]

    def highest(self, begin: float, end: float) -> Highest:
        """Return the highest value that is in force from `begin` to `end`, both included."""
        coming = self._coming(begin, end)
        found = Highest(_in_force(coming, begin, 1.0 if self.is_factor else None))
        for at, one in coming:
            if at > begin and (found.value is None or one.value > found.value):
                found = Highest(one.value, one.text, at)
        return found

    def is_over(self, now: float) -> bool:
        """Return whether all changes came once, the last of them before `now`."""
        return bool(self.changes) and all(one.at is not None and one.at < now for one in self.changes)

    def _coming(self, begin: float, end: float) -> list[tuple[float, RateChange]]:
        """Return the changes up to `end` with their times, in order, including the one in force at `begin`."""
        found = [(at, one) for one in self.changes for at in one.times(begin, end)]
        return sorted(found, key=lambda each: each[0])


def _in_force(coming: Sequence[tuple[float, RateChange]], at: float, before: float | None) -> float | None:
    return next((one.value for since, one in reversed(coming) if since <= at), before)


def _mean(coming: Sequence[tuple[float, RateChange]], begin: float, end: float) -> float:
    edges = [begin, *(at for at, _ in coming if begin < at < end), end]
    parts = [((_in_force(coming, low, 1.0) or 1.0) * (high - low), high - low) for low, high in pairwise(edges)]
    length = math.fsum(length for _, length in parts)
    return math.fsum(part for part, _ in parts) / length if length > 0 else 1.0


def _value(text: str, given: str, *, is_factor: bool) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (is_factor and value == 0):
        kind = "factor above 0" if is_factor else "rate in rows per second"
        raise ConfigError(f"{text!r}: {given} is not a {kind}; write {_EXAMPLES}")
    return value


def _instant(text: str, given: str) -> float:
    try:
        instant = datetime.fromisoformat(given)
    except ValueError:
        raise ConfigError(f"{text!r}: {given} is not a time; write {_EXAMPLES}") from None
    if instant.tzinfo is None:
        raise ConfigError(f"{text!r}: the time needs an offset from UTC; write {given}+01:00 or {given}Z")
    return instant.timestamp()


def _clock(text: str, given: str) -> time:
    hours, minutes, seconds = (*map(int, given.split(":")), 0)[:3]
    try:
        return time(hours, minutes, seconds)
    except ValueError:
        raise ConfigError(f"{text!r}: {given} is not a time of day; it lies from 00:00 to 23:59:59") from None


def _zone(text: str, given: str | None) -> tzinfo:
    if given is None:
        raise ConfigError(
            f"{text!r}: a time of day needs a time zone; add Europe/Zurich, UTC or an offset such as +01:00"
        )
    if given in {"UTC", "Z"}:
        return UTC
    if (offset := _OFFSET.fullmatch(given)) is not None:
        length = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"]))
        return timezone(-length if offset["sign"] == "-" else length)
    try:
        return ZoneInfo(given)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"{text!r}: the time zone {given!r} is not known on this machine; use a name such as Europe/Zurich (a system "
            "without a database of zones needs the package tzdata), UTC, or an offset such as +01:00"
        ) from None
