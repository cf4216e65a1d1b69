"""Map Arrow types to the layouts that Spark accepts; a source must return exactly these."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from skypane.naming import shortened
from skypane.types import ConfigError

_WHOLE_DECIMAL = 38
"""The largest number of digits of Spark's decimals."""


def as_in_spark(schema: pa.Schema) -> pa.Schema:
    """Return the schema in Spark's layouts: times in microseconds, UTC or without a zone; plain strings and lists.

    Raises ConfigError, naming the column, for a type that Spark does not have.
    """
    return pa.schema([pa.field(field.name, _of_column(field)) for field in schema])


def _of_column(field: pa.Field) -> pa.DataType:
    kind = _spark_type(field.type)
    if kind is None:
        raise ConfigError(
            f"column {shortened(field.name)!r} is {shortened(str(field.type))}, a type that Spark does not have; "
            "cast it, or leave it out of the file"
        )
    return kind


def _spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return Spark's layout for all values of a type, or None if Spark has none."""
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if pa.types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= _WHOLE_DECIMAL else None
    if pa.types.is_nested(kind):
        return _nested(kind)
    return next((spark for of_kind, spark in _LAYOUTS if of_kind(kind)), None)


_t = pa.types
_LAYOUTS: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (lambda kind: _t.is_string(kind) or _t.is_large_string(kind) or _t.is_string_view(kind), pa.string()),
    (lambda kind: _t.is_binary(kind) or _t.is_large_binary(kind) or _t.is_binary_view(kind), pa.binary()),
    (_t.is_fixed_size_binary, pa.binary()),
    (_t.is_boolean, pa.bool_()),
    (_t.is_int8, pa.int8()),
    (lambda kind: _t.is_int16(kind) or _t.is_uint8(kind), pa.int16()),
    (lambda kind: _t.is_int32(kind) or _t.is_uint16(kind), pa.int32()),
    (lambda kind: _t.is_int64(kind) or _t.is_uint32(kind), pa.int64()),
    (_t.is_uint64, pa.decimal128(20, 0)),
    (lambda kind: _t.is_float16(kind) or _t.is_float32(kind), pa.float32()),
    (_t.is_float64, pa.float64()),
    (_t.is_date, pa.date32()),
    (_t.is_time, pa.time64("ns")),
    (_t.is_duration, pa.duration("us")),
    (_t.is_null, pa.null()),
)
"""Types and Spark's layouts for them; unsigned numbers use the next wider signed type."""


def _nested(kind: pa.DataType) -> pa.DataType | None:
    if _t.is_struct(kind):
        fields = [_inner(field, field.name) for field in kind]
        return None if any(field is None for field in fields) else pa.struct(fields)
    if _t.is_map(kind):
        key, item = _spark_type(kind.key_type), _inner(kind.item_field, "value")
        return pa.map_(key, item) if key is not None and item is not None else None
    if any(test(kind) for test in (_t.is_list, _t.is_large_list, _t.is_fixed_size_list, _t.is_list_view)):
        element = _inner(kind.value_field, "element")
        return pa.list_(element) if element is not None else None
    return None


def _inner(field: pa.Field, name: str) -> pa.Field | None:
    kind = _spark_type(field.type)
    return None if kind is None else pa.field(name, kind, field.nullable)
