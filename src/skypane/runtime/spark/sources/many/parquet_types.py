"""The types of parquet from which a column of the schema is read, each with its cast; all others are refused by their types.

Spark's parquet reader takes fewer. Here, too, a value is kept or its row is malformed: numbers do not become times, and none is
rounded but a decimal to its nearest double. Times finer than microseconds are cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Is: TypeAlias = Callable[[pa.DataType], bool]
Cast: TypeAlias = Callable[[pa.ChunkedArray, pa.DataType], pa.ChunkedArray]


def cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return the values of a column in the wanted type; raise pa.ArrowInvalid if a type or a value does not fit."""
    stored = column.type
    if pa.types.is_dictionary(stored):
        column, stored = column.cast(stored.value_type), stored.value_type
    if stored == wanted:
        return column
    for rule in RULES:
        if rule.is_stored(stored) and rule.is_wanted(wanted) and rule.fits(stored, wanted):
            return rule.cast(column, wanted)
    if _is_nested(stored, wanted):
        return column.cast(wanted)
    raise pa.ArrowInvalid(f"the file has {stored}, which is not read as {wanted}; read it in this type, and cast it")


def _checked(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    return column.cast(wanted)


def _by_widest(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Cast whole numbers to a decimal: Arrow needs the digits of their type first."""
    return column.cast(pa.decimal256(20 + wanted.scale, wanted.scale)).cast(wanted)


def _by_digits(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Cast decimals to the nearest floats: a division of whole numbers is off by a unit for some."""
    return column.cast(pa.string()).cast(wanted)


def _instants(column: pa.ChunkedArray, wanted: pa.TimestampType) -> pa.ChunkedArray:
    """Cast times to microseconds; those without a zone are in UTC, as in Spark's parquet reader."""
    if column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")
    if column.type.tz is not None and wanted.tz is None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    return column.cast(wanted)


class Rule(NamedTuple):
    """Types that a file may have for wanted ones, and how their values are cast."""

    is_stored: Is
    is_wanted: Is
    cast: Cast = _checked
    fits: Callable[[pa.DataType, pa.DataType], bool] = lambda _stored, _wanted: True


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_bytes(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_local(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _any(_kind: pa.DataType) -> bool:
    return True


RULES: Final = (
    Rule(pa.types.is_null, _any),
    Rule(pa.types.is_integer, pa.types.is_integer),
    Rule(pa.types.is_integer, pa.types.is_floating),
    Rule(pa.types.is_integer, pa.types.is_decimal, _by_widest),
    Rule(pa.types.is_floating, pa.types.is_floating, fits=lambda stored, wanted: stored.bit_width < wanted.bit_width),
    Rule(pa.types.is_decimal, pa.types.is_decimal),
    Rule(pa.types.is_decimal, pa.types.is_floating, _by_digits),
    Rule(_is_text, _is_text),
    Rule(pa.types.is_timestamp, pa.types.is_timestamp, _instants),
    Rule(pa.types.is_date, pa.types.is_date),
    Rule(pa.types.is_date, _is_local),
)
"""In this order; what none of them names is refused."""


def _is_nested(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether lists or structs differ only in types whose values Arrow casts as the rules do."""
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        names = {one.name for one in stored}
        return all(one.name not in names or _is_plain(stored.field(one.name).type, one.type) for one in wanted)
    if pa.types.is_map(stored) and pa.types.is_map(wanted):
        return _is_plain(stored.key_type, wanted.key_type) and _is_plain(stored.item_type, wanted.item_type)
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return (
        any(is_list(stored) for is_list in lists)
        and pa.types.is_list(wanted)
        and _is_plain(stored.value_type, wanted.value_type)
    )


def _is_plain(stored: pa.DataType, wanted: pa.DataType) -> bool:
    return (
        stored == wanted
        or _is_nested(stored, wanted)
        or any(
            rule.cast is _checked and rule.is_stored(stored) and rule.is_wanted(wanted) and rule.fits(stored, wanted)
            for rule in RULES
        )
    )
