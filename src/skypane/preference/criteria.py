"""Criteria of single columns (small, large, or near a target), and their composition into components and levels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import MAX_PREC, Context, Decimal
from math import isfinite
from numbers import Integral, Real
from typing import TypeAlias

from skypane.types import ConfigError

_EXACT = Context(prec=MAX_PREC)

Target: TypeAlias = "int | float | Decimal | date | datetime"
"""The target of around(): an int if it is whole, a float if that shows the number as it is written, else a Decimal."""


@dataclass(frozen=True, slots=True)
class Low:
    """Smaller values of `column` are better."""

    column: str

    def __repr__(self) -> str:
        return f"low({self.column!r})"


@dataclass(frozen=True, slots=True)
class High:
    """Larger values of `column` are better."""

    column: str

    def __repr__(self) -> str:
        return f"high({self.column!r})"


@dataclass(frozen=True, slots=True)
class Around:
    """Values of `column` nearer to the interval [lo, hi] are better; all values inside it are equally good.

    Values at the same distance are equal for the preference, on either side of the interval (Kiessling's regular
    substitutable values): 38 and 42 are interchangeable around 40.
    """

    column: str
    lo: Target
    hi: Target

    def __post_init__(self) -> None:
        object.__setattr__(self, "lo", _target(self.column, self.lo))
        object.__setattr__(self, "hi", _target(self.column, self.hi))
        if not _in_order(self.lo, self.hi):
            raise ConfigError(
                f"around({self.column!r}) needs lo <= hi, both of the same kind, got ({self.lo!r}, {self.hi!r})"
            )

    def __repr__(self) -> str:
        target = repr(self.lo) if self.lo == self.hi else repr((self.lo, self.hi))
        return f"around({self.column!r}, {target})"


Criterion: TypeAlias = Low | High | Around

Component: TypeAlias = tuple[Criterion, ...]
"""One dimension of a skyline: a single criterion, or several that are compared lexicographically."""

Level: TypeAlias = tuple[Component, ...]
"""A Pareto product of components."""


def _target(column: str, value: object) -> Target:
    match value:
        case bool():
            pass
        case Integral():
            return int(value)
        case Decimal() if isfinite(float(value)):
            number = float(value)
            return (
                int(value)
                if value == int(value)
                else number
                if Decimal(repr(number)) == value
                else value.normalize(_EXACT)
            )
        case Real() if isfinite(value):
            number = float(value)
            return int(number) if number.is_integer() else number
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case date():
            return value
    raise ConfigError(f"around({column!r}) needs a finite number, a date or a datetime as its target, got {value!r}")


def _in_order(lo: Target, hi: Target) -> bool:
    try:
        return lo <= hi  # type: ignore[operator]
    except TypeError:
        return False
