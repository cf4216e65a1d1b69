"""Checks whether times lie in plausible years, or have probably been read in a wrong unit."""

from __future__ import annotations

from skypane.describing.columns import UNITS, Unit
from skypane.types import TICKS_PER_SECOND, Micros

_YEAR: Micros = 31_556_952_000_000
#: half-open range of years; times before or close to 1970 probably count from the start of the stream
_CREDIBLE = (1971, 2200)
#: the range for timestamps, whose unit is known: they may count from a start, or belong to historical records
_POSSIBLE = (1800, 2200)


def credible(first: Micros, last: Micros) -> bool:
    """Return whether times from `first` to `last` look like dates."""
    return _CREDIBLE[0] <= _year(first) and _year(last) < _CREDIBLE[1]


def doubt(first: Micros, last: Micros, *, unit_assumed: bool) -> str:
    """Return why event times from `first` to `last` may be misread, and a better unit; "" if they are plausible.

    unit_assumed: they are whole numbers, read as microseconds.
    """
    if credible(first, last):
        return ""
    unlikely = f"{_year(first)} to {_year(last)} are unlikely"
    if not unit_assumed:
        known = _POSSIBLE[0] <= _year(first) and _year(last) < _POSSIBLE[1]
        return "" if known else f"{unlikely}: was the column written in another unit?"
    for unit in UNITS:
        if credible(_reread(first, unit), _reread(last, unit)):
            return (
                f"{unlikely}: whole numbers are read as microseconds; --unit {unit} gives {_year(_reread(first, unit))}"
            )
    return f"{unlikely}: whole numbers are read as microseconds; give --unit if they are not"


def _reread(time: Micros, unit: Unit) -> Micros:
    return time * TICKS_PER_SECOND["us"] // TICKS_PER_SECOND[unit]


def _year(time: Micros) -> int:
    return 1970 + time // _YEAR
