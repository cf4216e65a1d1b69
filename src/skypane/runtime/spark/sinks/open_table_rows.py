"""Rows of answers as a table of an open format, Iceberg or Delta, holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.window_query import EMPTY
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError

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


def check_types(schema: pa.Schema, table: str, kind: str) -> None:
    """Raise ConfigError, which names the column, if rows of a schema cannot be in a table of this kind."""
    for field in schema:
        if not _is_held(field.type):
            raise ConfigError(
                f"table {table}: column {field.name!r} is of type {field.type}, for which {kind} has no column; drop "
                f"it, or cast it to a number or a string"
            )


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table for rows of a schema: an empty version of a window has no rows there."""
    left_out = {EMPTY} if is_versioned(schema) else set()
    return pa.schema([pa.field(field.name, _in_utc(field.type)) for field in schema if field.name not in left_out])


def stored_rows(answers: BatchRows, schema: pa.Schema, table: str) -> Iterator[pa.RecordBatch]:
    """Yield rows with the columns of a table, null where the rows have none.

    Raises ConfigError if a column that must have a value lacks one.
    """
    for part in answers.parts():
        rows = part.filter(pc.invert(part[EMPTY])) if is_versioned(answers.schema) else part
        for field in schema:
            if not field.nullable and rows[field.name].null_count:  # it has the column, as check_columns() demands
                raise ConfigError(
                    f"table {table}: column {field.name!r} must have a value in each row (NOT NULL), and a row has none: "
                    f"ALTER TABLE {table} ALTER COLUMN {field.name} DROP NOT NULL"
                )
        columns = [
            rows[field.name].cast(field.type)
            if field.name in rows.schema.names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        yield from pa.table(columns, schema=schema).to_batches()


def check_columns(stored: pa.Schema, columns: Mapping[str, bool], table: str) -> None:
    """Raise ConfigError, which names the column, if a table lacks one, or has one that must have a value and the rows lack.

    stored   columns of the rows
    columns  those of the table, each with whether it must have a value
    """
    if missing := [field for field in stored if field.name not in columns]:
        added = ", ".join(f"`{field.name}` {_sql_type(field.type)}" for field in missing)
        raise ConfigError(
            f"table {table} has no column {', '.join(repr(field.name) for field in missing)}, which the rows have: "
            f"ALTER TABLE {table} ADD COLUMNS ({added}), or name another table"
        )
    for name, is_required in columns.items():
        if is_required and name not in stored.names:
            raise ConfigError(
                f"table {table} has the column {name!r}, which must have a value in each row, and which the rows "
                f"do not have: ALTER TABLE {table} ALTER COLUMN {name} DROP NOT NULL, or name another table"
            )


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
