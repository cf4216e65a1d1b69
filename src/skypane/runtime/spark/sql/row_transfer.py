"""Rows of a table function that receives them one by one, as columns: Spark 4.0 has no functions of Arrow batches.

A time with zone is sent as its microseconds: as an object of Python it would be local time, which is ambiguous in the
hour in which summer time ends. An expression is sent with its type, which Python's decimals and nulls do not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, TimestampType

from skypane.types import ConfigError

BY_COLUMNS: Final = hasattr(sf, "arrow_udtf")
"""Whether this version of Spark sends batches of columns to a table function: from 4.1 on."""

_KINDS: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
"""The types of expressions, by the names that Spark's typeof() gives them."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_SPAN: Final = re.compile(r"interval (day|hour|minute|second).*")

ROWS: Final = 10_000
"""Rows that become columns together."""


def as_integer(sql: str, kind: DataType) -> str:
    """Return the SQL of what is sent of a column: the microseconds of a time with zone, other values as they are."""
    return f"unix_micros({sql})" if isinstance(kind, TimestampType) else sql


def with_type(sql: str, checked: str) -> str:
    """Return the SQL of what is sent of an expression, `sql`: the name of its type, and the value of `checked`."""
    return f"named_struct('kind', typeof({sql}), 'value', {checked})"


def check_rows(schema: pa.Schema) -> None:
    """Raise ConfigError, naming the column, for a type whose values change if they are sent one by one."""
    for field in schema:
        if pa.types.is_nested(field.type) and _holds_instants(field.type):
            raise ConfigError(
                f"column {field.name!r} holds times with zone inside of {field.type}, which Spark sends exactly from 4.1 "
                f"on only: leave it out of the table, or use the DataFrame API"
            )


def _holds_instants(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_holds_instants(kind.field(number).type) for number in range(kind.num_fields))


def columns_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` of some rows; in it an expression, which is sent with its type, is of the type null.

    Raises ConfigError, naming the expression, if it is of a type whose values change if they are sent one by one.
    """
    named = dict(zip(rows[0].__fields__, zip(*rows, strict=True), strict=True))
    columns = ((named[field.name], field) for field in schema)
    return pa.RecordBatch.from_arrays([_array(values, field) for values, field in columns], names=schema.names)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    if pa.types.is_null(field.type) and isinstance(values[0], Row):  # else it is a column of nulls
        return pa.array([value.value for value in values], _kind(values[0].kind, field.name))
    if pa.types.is_nested(field.type):
        return pa.array([_plain(value) for value in values], field.type)
    return pa.array(values, field.type)


def _kind(called: str, expression: str) -> pa.DataType:
    """Return the Arrow type of an expression whose type Spark calls so."""
    if decimal := _DECIMAL.fullmatch(called):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if _SPAN.fullmatch(called):
        return pa.duration("us")
    if called not in _KINDS:
        raise ConfigError(
            f"{expression!r} is of type {called}, of which Spark sends columns alone before 4.1: name it in the table, "
            f"TABLE(SELECT *, {expression} AS x ...)"
        )
    return _KINDS[called]


def _plain(value: Any) -> Any:
    """Return a value with dicts for structs, and pairs for maps, as Arrow reads them."""
    if isinstance(value, Row):
        return {name: _plain(part) for name, part in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return [(_plain(key), _plain(part)) for key, part in value.items()]
    return [_plain(part) for part in value] if isinstance(value, list) else value


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a batch as PySpark reads them."""
    columns = [[_read(value, field.type) for value in batch.column(field.name).to_pylist()] for field in batch.schema]
    yield from zip(*columns, strict=True)


def _read(value: Any, kind: pa.DataType) -> Any:
    """Return a value of to_pylist() with dicts for maps."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {_read(key, kind.key_type): _read(part, kind.item_type) for key, part in value}
    if pa.types.is_struct(kind):
        return {field.name: _read(value[field.name], field.type) for field in kind}
    return [_read(part, kind.value_type) for part in value]
