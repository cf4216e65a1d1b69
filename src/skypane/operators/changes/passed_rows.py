"""Partials that hold rows: rows with the columns that the new query passes on."""

from __future__ import annotations

import pyarrow as pa


def with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of `schema`: those that it lacks are dropped, those that the rows lack are null."""
    there = set(rows.schema.names)
    columns = [
        rows.column(field.name) if field.name in there else pa.nulls(rows.num_rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
