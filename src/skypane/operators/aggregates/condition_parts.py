"""The parts of conditions that workers evaluate with Arrow, each with the types for which its values are those of Spark.

| column                      | beside a literal                        | beside a column          |
|-----------------------------|-----------------------------------------|--------------------------|
| whole number                | whole number                            | whole number             |
| double                      | whole number, decimal or double         | double                   |
| decimal                     | whole number or decimal, if a decimal of 38 digits holds all values of both | decimal, likewise |
| text                        | text                                    | text                     |
| boolean                     | TRUE, FALSE                             | boolean                  |
| date, timestamp             |                                         | of the same type         |

Floats of 32 bits are not listed: beside them, Spark rounds a whole number by its settings. A comparison with null is neither
true nor false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Literal: TypeAlias = int | float | Decimal | str | bool
"""A literal as SQL types it: with a point it is a decimal, with an exponent a double."""
Kinds: TypeAlias = Mapping[str, pa.DataType]

_WIDEST: Final = 38
_INT32_DIGITS: Final = 10
_INT64_DIGITS: Final = 20


def _greater(left: Any, right: Any) -> Any:
    return pc.or_kleene(pc.greater(left, right), pc.and_kleene(_is_nan(left), pc.invert(_is_nan(right))))


def _equal(left: Any, right: Any) -> Any:
    return pc.or_kleene(pc.equal(left, right), pc.and_kleene(_is_nan(left), _is_nan(right)))


def _is_nan(value: Any) -> Any:
    return pc.is_nan(value) if pa.types.is_floating(value.type) else pa.scalar(value=False)


#: comparisons as in Spark: NaN equals itself, and is larger than any other number
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": lambda left, right: _greater(right, left),
    "<=": lambda left, right: pc.invert(_greater(left, right)),
    ">": _greater,
    ">=": lambda left, right: pc.invert(_greater(right, left)),
    "=": _equal,
    "<>": lambda left, right: pc.invert(_equal(left, right)),
}


class Part(Protocol):
    """A part of a condition that is a condition itself."""

    def columns(self) -> Iterator[str]:
        """Yield the columns that it reads."""
        ...

    def fits(self, kinds: Kinds) -> bool:
        """Return whether Arrow's values of columns of these types are those of Spark."""
        ...

    def value(self, rows: pa.Table) -> Any:
        """Return its truth values, shape (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """A column, of truth values if it is a condition."""

    name: str

    def columns(self) -> Iterator[str]:
        yield self.name

    def fits(self, kinds: Kinds) -> bool:
        return bool(pa.types.is_boolean(kinds[self.name]))

    def value(self, rows: pa.Table) -> Any:
        return rows.column(self.name)


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions joined by AND, or by OR."""

    by_or: bool
    parts: tuple[Part, ...]

    def columns(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.columns()

    def fits(self, kinds: Kinds) -> bool:
        return all(part.fits(kinds) for part in self.parts)

    def value(self, rows: pa.Table) -> Any:
        return reduce(pc.or_kleene if self.by_or else pc.and_kleene, (part.value(rows) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Negated:
    """NOT a condition."""

    part: Part

    def columns(self) -> Iterator[str]:
        yield from self.part.columns()

    def fits(self, kinds: Kinds) -> bool:
        return self.part.fits(kinds)

    def value(self, rows: pa.Table) -> Any:
        return pc.invert(self.part.value(rows))


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is null."""

    column: str

    def columns(self) -> Iterator[str]:
        yield self.column

    def fits(self, kinds: Kinds) -> bool:
        return self.column in kinds

    def value(self, rows: pa.Table) -> Any:
        return pc.is_null(rows.column(self.column))


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a column with a column or a literal, by one of = <> < <= > >=."""

    column: str
    sign: str
    other: Column | Literal

    def columns(self) -> Iterator[str]:
        yield self.column
        if isinstance(self.other, Column):
            yield self.other.name

    def fits(self, kinds: Kinds) -> bool:
        kind, other = kinds[self.column], self.other
        return _are_compared(kind, kinds[other.name]) if isinstance(other, Column) else _has_literal(kind, other)

    def value(self, rows: pa.Table) -> Any:
        values, other = rows.column(self.column), self.other
        return _COMPARE[self.sign](
            values, rows.column(other.name) if isinstance(other, Column) else _scalar(other, values.type)
        )


@dataclass(frozen=True, slots=True)
class Among:
    """Whether a column of whole numbers or texts has one of several values."""

    column: str
    listed: tuple[Literal, ...]

    def columns(self) -> Iterator[str]:
        yield self.column

    def fits(self, kinds: Kinds) -> bool:
        kind = kinds[self.column]
        return (_is_whole(kind) or _is_text(kind)) and all(_has_literal(kind, one) for one in self.listed)

    def value(self, rows: pa.Table) -> Any:
        values = rows.column(self.column)
        values = values.cast(pa.int64()) if _is_whole(values.type) else values
        found = pc.is_in(values, value_set=pa.array(self.listed, values.type))
        return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _are_compared(left: pa.DataType, right: pa.DataType) -> bool:
    t = pa.types
    if t.is_decimal(left) and t.is_decimal(right):
        return _one_decimal_holds(left, right.precision, right.scale)
    listed = (t.is_float64, t.is_boolean, t.is_date32, t.is_timestamp, _is_text)
    return (_is_whole(left) and _is_whole(right)) or (left == right and any(test(left) for test in listed))


def _has_literal(kind: pa.DataType, literal: Literal) -> bool:
    if isinstance(literal, bool | str):
        return bool(pa.types.is_boolean(kind) if isinstance(literal, bool) else _is_text(kind))
    if pa.types.is_decimal(kind) and not isinstance(literal, float):
        return _one_decimal_holds(kind, *_digits(literal))
    return bool(pa.types.is_float64(kind) or (isinstance(literal, int) and _is_whole(kind)))


def _one_decimal_holds(kind: pa.DataType, precision: int, scale: int) -> bool:
    """Return whether a decimal type holds all values of two of them: for others Spark rounds, or has null."""
    digits = max(kind.precision - kind.scale, precision - scale) + max(kind.scale, scale)
    return bool(pa.types.is_decimal128(kind) and digits <= _WIDEST)


def _digits(literal: int | Decimal) -> tuple[int, int]:
    """Return precision and scale of the decimal type that a literal has in SQL beside a decimal."""
    if isinstance(literal, int):
        return (_INT32_DIGITS if -(2**31) <= literal < 2**31 else _INT64_DIGITS), 0
    _, digits, exponent = literal.as_tuple()
    return max(len(digits), -int(exponent)), -int(exponent)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _scalar(literal: Literal, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(kind) and isinstance(literal, int | Decimal):
        return pa.scalar(Decimal(literal), pa.decimal128(*_digits(literal)))
    return pa.scalar(float(literal) if pa.types.is_float64(kind) else literal)
