"""Rows of answers as a table of Iceberg holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.window_query import EMPTY
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyiceberg.table import Table

_TYPES: Final = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_date32,
)
_MICROS: Final = frozenset({"s", "ms", "us"})


def check_types(schema: pa.Schema, table: str) -> None:
    """Raise ConfigError, which names the column, if rows of a schema cannot be in a table of Iceberg."""
    for field in schema:
        if not _is_held(field.type):
            raise ConfigError(
                f"table {table}: column {field.name!r} is of type {field.type}, for which Iceberg has no column; drop "
                f"it, or cast it to a number or a string"
            )


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table for rows of a schema: an empty version of a window has no rows there."""
    left_out = {EMPTY} if is_versioned(schema) else set()
    return pa.schema([pa.field(field.name, _in_utc(field.type)) for field in schema if field.name not in left_out])


def stored_rows(answers: BatchRows, schema: pa.Schema, table: str) -> Iterator[pa.RecordBatch]:
    """Yield rows with the columns of fitted(); raise ConfigError if a column that must have a value lacks one."""
    for part in answers.parts():
        rows = part.filter(pc.invert(part[EMPTY])) if is_versioned(answers.schema) else part
        for field in schema:
            if not field.nullable and rows[field.name].null_count:
                raise ConfigError(
                    f"table {table}: column {field.name!r} must have a value in each row (NOT NULL), and a row has none: "
                    f"ALTER TABLE {table} ALTER COLUMN {field.name} DROP NOT NULL"
                )
        columns = [rows[field.name].cast(field.type) for field in schema]
        yield from pa.table(columns, schema=schema).to_batches()


def fitted(schema: pa.Schema, there: Table, table: str) -> pa.Schema:
    """Return the stored schema of rows as the table `there` takes it.

    Raises ConfigError, which names the column, if the table lacks one, has another type for it, or has a column that
    must have a value, or by which it is partitioned, and that the rows do not have.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema  # noqa: PLC0415 - an extra
    from pyiceberg.schema import Schema as Columns  # noqa: PLC0415

    stored = stored_schema(schema)
    fields = {field.name: field for field in there.schema().fields}
    if missing := [field for field in stored if field.name not in fields]:
        added = ", ".join(f"`{field.name}` {_sql_type(field.type)}" for field in missing)
        raise ConfigError(
            f"table {table} has no column {', '.join(repr(field.name) for field in missing)}, which the rows have: "
            f"ALTER TABLE {table} ADD COLUMNS ({added}), or name another table"
        )
    for field in fields.values():
        if field.required and field.name not in stored.names:
            raise ConfigError(
                f"table {table} has the column {field.name!r}, which must have a value in each row, and which the rows "
                f"do not have: ALTER TABLE {table} ALTER COLUMN {field.name} DROP NOT NULL, or name another table"
            )
    _check_partitions(stored, there, table)
    for field in stored:
        column = Columns(fields[field.name])
        try:
            own = pyarrow_to_schema(pa.schema([field]), name_mapping=column.name_mapping).fields[0].field_type
        except (ValueError, TypeError):  # a nested field that the table's column lacks
            own = None
        if own is None or not _holds(fields[field.name].field_type, own):
            raise ConfigError(
                f"table {table}: column {field.name!r} is {fields[field.name].field_type}, and the rows have "
                f"{own or field.type}: cast it in the query, or name another table"
            )
    return pa.schema([field.with_nullable(not fields[field.name].required) for field in stored])


def _check_partitions(stored: pa.Schema, there: Table, table: str) -> None:
    """Raise ConfigError if a column by which a table is partitioned is missing: PyIceberg takes it from the rows."""
    for partition in there.spec().fields:
        source = there.schema().find_column_name(partition.source_id) or ""
        if not {source, source.partition(".")[0]} & set(stored.names):  # a.b is a column, or a field of the column a
            raise ConfigError(
                f"table {table} is partitioned by the column {source!r}, which the rows do not have: partition it by "
                f"others, or name another table"
            )


def _holds(there: Any, own: Any) -> bool:
    """Return whether a table's column of type `there` holds all values of type `own`.

    PyIceberg's promote() is for reading: it also takes bytes for a text, and a decimal of another scale. Types of Arrow
    are compared, as those of Iceberg differ by the comments of nested fields.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415
    from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType  # noqa: PLC0415

    if isinstance(own, DecimalType) and isinstance(there, DecimalType):
        return own.scale == there.scale and own.precision <= there.precision
    if (type(own), type(there)) in {(IntegerType, LongType), (FloatType, DoubleType)}:
        return True
    one, other = (schema_to_pyarrow(kind, include_field_ids=False) for kind in (own, there))
    return type(own) is type(there) and bool(one == other)


def _is_held(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit in _MICROS
    if pa.types.is_map(kind):
        return _is_held(kind.key_type) and _is_held(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_held(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_held(field.type) for field in kind)
    return any(test(kind) for test in _TYPES)


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """Return a type with the zone UTC in place of others, for the same moments; all nested fields may be null."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_map(kind):
        return pa.map_(_in_utc(kind.key_type), _in_utc(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_in_utc(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _in_utc(field.type)) for field in kind])
    return kind


def _sql_type(kind: pa.DataType) -> str:
    """Return a type as Spark's SQL names it."""
    return spark_schema(pa.schema([("column", kind)]))[0].dataType.simpleString()
