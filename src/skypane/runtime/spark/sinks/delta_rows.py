"""Rows of answers as a table of Delta Lake takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from skypane.runtime.spark.sinks.open_table_rows import check_columns, stored_schema
from skypane.types import ConfigError

if TYPE_CHECKING:
    from deltalake import DeltaTable

_SIGNS: Final = re.compile(r"[ ,;{}()\n\t=]")
"""Signs that the name of a column has only in tables with column mapping."""


def check_names(schema: pa.Schema, table: str) -> None:
    """Raise ConfigError if Spark could not read a column of this name from a new table."""
    for name in schema.names:
        if _SIGNS.search(name):
            raise ConfigError(
                f"table {table}: the column name {name!r} has one of the signs ' ,;{{}}()=', which Delta does not take: "
                f"give the column another name in the query"
            )


def fitted(schema: pa.Schema, there: DeltaTable, table: str) -> pa.Schema:
    """Return the columns of the table `there`, all of which it takes in each row.

    Raises ConfigError, which names the column, if the table lacks one, has another type for it, or has a column that
    must have a value and that the rows do not have.
    """
    stored, columns = stored_schema(schema), pa.schema(there.schema())
    check_columns(stored, {field.name: not field.nullable for field in columns}, table)
    for partition in there.metadata().partition_columns:
        if partition not in stored.names:
            raise ConfigError(
                f"table {table} is partitioned by the column {partition!r}, which the rows do not have: partition it by "
                f"others, or name another table"
            )
    for field in stored:
        column = columns.field(field.name)
        if not _holds(column.type, field.type):
            raise ConfigError(
                f"table {table}: column {field.name!r} is {column.type}, and the rows have {field.type}: cast it in the "
                f"query, or name another table"
            )
    return columns


def _holds(there: pa.DataType, own: pa.DataType) -> bool:
    """Return whether a table's column of type `there` holds all values of type `own`."""
    if pa.types.is_decimal(own) and pa.types.is_decimal(there):
        return bool(own.scale == there.scale and own.precision <= there.precision)
    for is_kind in (pa.types.is_signed_integer, pa.types.is_floating):
        if is_kind(own) and is_kind(there):
            return bool(own.bit_width <= there.bit_width)
    if pa.types.is_struct(own) and pa.types.is_struct(there):
        inner = {field.name: field for field in there}
        return len(own) == len(there) and all(
            field.name in inner and inner[field.name].nullable and _holds(inner[field.name].type, field.type)
            for field in own
        )
    if _is_list(own) and _is_list(there):
        return _holds(there.value_type, own.value_type)
    if pa.types.is_map(own) and pa.types.is_map(there):
        return bool(_holds(there.key_type, own.key_type) and _holds(there.item_type, own.item_type))
    return bool(_plain(own) == _plain(there))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
