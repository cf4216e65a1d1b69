"""Types and errors that all layers share; internally, event time is always int64 microseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skypane.naming import shortened

Micros: TypeAlias = int
"""A point in event time or a duration, in microseconds."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
BytesArray: TypeAlias = NDArray[np.uint8]


class Length(int):
    """A duration in microseconds, as micros() returns it; micros() accepts it again, unlike a bare number.

    >>> Length(5_400_000_000), Length(5_400_000_000) + 1
    ('90 minutes', 5400000001)
    """

    __slots__ = ()

    __str__ = int.__repr__

    def __repr__(self) -> str:
        """Return a text that micros() parses to the same length."""
        return repr(self.words)

    @property
    def words(self) -> str:
        """The length in the largest unit in which it is a whole number."""
        unit = next(
            unit for unit in ("day", "hour", "minute", "second", "millisecond", "us") if self % _UNITS[unit] == 0
        )
        number = self // _UNITS[unit]
        return f"{number} {unit}" if number == 1 or unit == "us" else f"{number} {unit}s"


Duration: TypeAlias = "str | timedelta | Length"
"""A duration as users write it: "1 hour 30 minutes", or a timedelta. A bare number is refused, since it has no unit."""

Cadence: TypeAlias = "int | Duration"
"""A number of micro-batches, or a duration."""

TICKS_PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks per second of Arrow's time units."""


class SkypaneError(Exception):
    """Base class of the errors that skypane raises on purpose.

    >>> try:
    ...     sp.skyline(offers, "prize MIN")
    ... except sp.SkypaneError as error:
    ...     print(type(error).__name__)
    ...
    ConfigError
    """


class ConfigError(SkypaneError, ValueError):
    """An invalid job, query or policy; the message names the field and the value.

    >>> sp.skyline(offers, "prize MIN")
    Traceback (most recent call last):
        ...
    skypane.types.ConfigError: column 'prize' does not exist; did you mean 'price'?
    """


class BadInputError(SkypaneError, ValueError):
    """Data that a batch query cannot rank; the message names the column and the reason.

    >>> import pyarrow as pa
    >>> sp.Score("price").values(pa.table({"price": [90.0, None]}))
    Traceback (most recent call last):
        ...
    skypane.types.BadInputError: column 'price' is null in 1 row; drop or fill them first
    """


class MemoryLimitError(SkypaneError, MemoryError):
    """A batch, a window or a query that needs more memory than is available; the message names both amounts.

    >>> issubclass(sp.MemoryLimitError, sp.SkypaneError)
    True
    """


class CheckpointError(SkypaneError, RuntimeError):
    """A checkpoint that is damaged or belongs to another query definition.

    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best")
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> other = sp.stream(arriving, "price MAX", time="ts", window="1 hour", checkpoint="state", output="best")
    >>> other.start()
    Traceback (most recent call last):
        ...
    skypane.types.CheckpointError: the checkpoint ... belongs to another query: ... Use another checkpoint, or ...
    """


_UNITS: dict[str, Micros] = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
_LONGEST_SYMBOL = 2
"""Letters of the longest unit symbol; units with more letters are words, which may have a plural."""

_LONGEST_NUMBER = 100
"""Limit of the characters of a number."""

_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*,?")


def micros(duration: Duration, name: str = "duration") -> Length:
    """Return `duration` in whole microseconds; fractions of a microsecond in a text are rounded.

    Months and years are refused, as in Spark's own window(), since they have no fixed length. A bare number is refused,
    since it has no unit; a Length, which this function returns, is accepted.

    >>> int(micros("1 hour 30 minutes"))
    5400000000
    """
    if isinstance(duration, Length):
        return duration
    if isinstance(duration, timedelta):
        return Length(duration // timedelta(microseconds=1))
    if not isinstance(duration, str):
        raise ConfigError(
            f"{name} must be a text such as '10 minutes' or a timedelta, got {duration!r}{_hint(duration)}"
        )
    return _parse(duration, name)


def truth(value: object, name: str) -> bool:
    """Return a truth value, which may be a text as in options of Spark; raise ConfigError, naming `name`, for another value.

    >>> truth("False", "header")
    False
    """
    found = {"true": True, "false": False}.get(value.lower() if isinstance(value, str) else "", value)
    if not isinstance(found, bool | np.bool_):
        raise ConfigError(f"{name} must be true or false, got {value!r}")
    return bool(found)


def _hint(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, Real):
        return ""
    return f", which has no unit; for seconds, write '{value} seconds' or timedelta(seconds={value})"


def _parse(text: str, name: str) -> Length:
    body = text.strip().lower().removeprefix("interval ")
    total, at = Fraction(0), 0
    while match := _TERM.match(body, at):
        unit = match[2]
        scale = _scale(unit)
        if scale is None:
            raise ConfigError(
                f"{name}: unknown unit {shortened(unit)!r} in {shortened(text)!r}; use one of {', '.join(_UNITS)}"
            )
        if len(match[1]) > _LONGEST_NUMBER:
            raise ConfigError(f"{name}: {shortened(text)!r} has a number of more than {_LONGEST_NUMBER} characters")
        total += Fraction(match[1]) * scale
        at = match.end()
    if at != len(body) or at == 0:
        raise ConfigError(f"{name}: cannot read {shortened(text)!r} as a duration; write it like '1 hour 30 minutes'")
    return Length(round(total))


def _scale(unit: str) -> Micros | None:
    singular = unit.removesuffix("s")
    return _UNITS.get(unit) or (_UNITS.get(singular) if len(singular) > _LONGEST_SYMBOL else None)
