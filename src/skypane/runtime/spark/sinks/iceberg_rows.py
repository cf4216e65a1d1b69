"""Rows of answers as a table of Iceberg takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skypane.runtime.spark.sinks.open_table_rows import check_columns, stored_schema
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyiceberg.table import Table


def fitted(schema: pa.Schema, there: Table, table: str) -> pa.Schema:
    """Return the stored schema of rows as the table `there` takes it.

    Raises ConfigError, which names the column, if the table lacks one, has another type for it, or has a column that
    must have a value, or by which it is partitioned, and that the rows do not have.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema  # noqa: PLC0415 - an extra
    from pyiceberg.schema import Schema as Columns  # noqa: PLC0415

    stored = stored_schema(schema)
    fields = {field.name: field for field in there.schema().fields}
    check_columns(stored, {name: field.required for name, field in fields.items()}, table)
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
