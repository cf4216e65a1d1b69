"""JSON as this package and Spark write it, where Arrow's parser reads it otherwise or not at all: row by row.

NaN and the infinities are texts, bytes are texts in base64, and dates and times may lie within lists and structs.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from skypane.runtime.columns_to_read import zone_of
from skypane.runtime.local_times import UTC, times_of

_SPECIAL: Final = {"NaN": "nan", "Infinity": "inf", "INF": "inf", "+INF": "inf", "+Infinity": "inf",
                   "-Infinity": "-inf", "-INF": "-inf"}  # fmt: skip
"""The texts that Spark's reader takes for a number."""

EXPONENT: Final = re.compile(rb"(?:^|[\s:\[,\"])[+-]?[\d.]+[eE][+-]?\d", re.MULTILINE)
"""A number with an exponent where a value may begin: as a decimal Arrow wraps it around, rounds it, or ends the process."""

_DIGITS: Final = 76

_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

Decoder: TypeAlias = Callable[[Any], Any]
Row: TypeAlias = list[Any]
"""Values by column."""


def binaries(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts in base64 as bytes; raise pa.ArrowInvalid for one that is none."""
    try:
        values = [None if text is None else b64decode(text, validate=True) for text in texts.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid(f"bytes must be a text in base64: {error}") from None
    return pa.chunked_array([pa.array(values, pa.binary())])


def decimals(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return texts as decimals, or raise pa.ArrowInvalid for one that is none; blanks around it do not count."""
    try:
        values = [None if text is None else _decimal(text.strip()) for text in texts.to_pylist()]
    except (TypeError, ArithmeticError) as error:
        raise pa.ArrowInvalid(str(error)) from None
    return pa.chunked_array([pa.array(values, kind)])


def has_decimals(columns: pa.Schema) -> bool:
    """Return whether a column has decimals, or values with decimals in them."""
    return any(_holds(one.type, pa.types.is_decimal) for one in columns)


def _holds(kind: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    return is_kind(kind) or any(_holds(kind.field(at).type, is_kind) for at in range(kind.num_fields))


def needs_care(columns: pa.Schema, text: bytes) -> bool:
    """Return whether the parser would read some values of a text as others than they are."""
    if any(is_nested_text(one.type, zone_of(columns)) for one in columns):
        return True
    return has_decimals(columns) and EXPONENT.search(text) is not None


def is_nested_text(kind: pa.DataType, zone: str) -> bool:
    """Return whether the parser would take texts within values of a type for what they are not."""

    def is_misread(one: pa.DataType) -> bool:
        local = pa.types.is_timestamp(one) and (zone != UTC or one.tz is None)
        return bool(local or pa.types.is_binary(one) or pa.types.is_date(one))

    return pa.types.is_nested(kind) and _holds(kind, is_misread)


def values_of(columns: pa.Schema, texts: Sequence[bytes]) -> list[Row | None]:
    """Return the values of each text, by column; None for one that is not an object with values of the columns' types."""
    decoders = [(one.name, _or_null(_decoder(one.type, zone_of(columns)))) for one in columns]

    def values(text: bytes) -> Row | None:
        try:
            row = json.loads(text.decode(), parse_float=Decimal, object_pairs_hook=_once, strict=False)
            return [decode(row.get(name)) for name, decode in decoders]
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, pa.ArrowException):
            return None

    return [values(text) for text in texts]


def table_of(columns: pa.Schema, rows: Sequence[Row | None]) -> pa.Table | None:
    """Return values as a table, None if a row has none, or one that its type does not hold."""
    there = [row for row in rows if row is not None]
    if len(there) < len(rows):
        return None
    try:
        arrays = [pa.array([row[at] for row in there], one.type) for at, one in enumerate(columns)]
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        return None
    return pa.Table.from_arrays(arrays, schema=columns)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(row := dict(pairs)) < len(pairs):
        raise ValueError("a name is there twice")
    return row


def _or_null(decode: Decoder) -> Decoder:
    return lambda value: None if value is None else decode(value)


def _decoder(kind: pa.DataType, zone: str) -> Decoder:
    if pa.types.is_list(kind):
        item = _or_null(_decoder(kind.value_type, zone))
        return lambda values: [item(value) for value in _of(values, list)]
    if pa.types.is_struct(kind):
        fields = {one.name: _or_null(_decoder(one.type, zone)) for one in kind}
        return lambda row: {name: decode(_of(row, dict).get(name)) for name, decode in fields.items()}
    for is_kind, decode in _SIMPLE:
        if is_kind(kind):
            return decode
    if pa.types.is_timestamp(kind):
        return lambda text: times_of(pa.chunked_array([[_of(text, str)]]), kind, zone)[0].as_py()
    if pa.types.is_date(kind):
        return lambda text: pa.scalar(_of(text, str)).cast(kind).as_py()
    raise TypeError(f"{kind} is not read from JSON")


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _float(value: Any) -> float:
    if isinstance(value, str):
        return float(_SPECIAL[value]) if value in _SPECIAL else _of(value, float)
    return float(value if type(value) in {int, Decimal} else _of(value, float))


def _decimal(value: Any) -> Decimal:
    if type(value) not in {int, Decimal} and not _DECIMAL.fullmatch(_of(value, str)):
        raise TypeError(f"{value!r} is not a decimal number")
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not (isinstance(exponent, int) and len(digits) <= _DIGITS and abs(exponent) <= _DIGITS):
        raise ArithmeticError("no decimal has so many digits")  # Arrow ends the process at some
    return number


_SIMPLE: Final[tuple[tuple[Callable[[pa.DataType], bool], Decoder], ...]] = (
    (pa.types.is_floating, _float), (pa.types.is_integer, lambda value: _of(value, int)), (pa.types.is_decimal, _decimal),
    (pa.types.is_boolean, lambda value: _of(value, bool)), (pa.types.is_string, lambda value: _of(value, str)),
    (pa.types.is_binary, lambda value: b64decode(_of(value, str), validate=True)),
)  # fmt: skip
