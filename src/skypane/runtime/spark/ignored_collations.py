"""Collations of Spark, which make texts equal that differ in bytes: skypane compares texts by their bytes."""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StringType, StructType

log = logging.getLogger(__name__)

_BY_BYTES = "UTF8_BINARY"
"""The collation of texts for which none is given."""
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key, in the metadata of a column, for a text of a length."""


def collation_of(kind: DataType) -> str | None:
    """Return the collation of a type of text, such as UTF8_LCASE; None for another type, or if it compares bytes."""
    named = kind.collation if isinstance(kind, StringType) else _BY_BYTES
    return None if named == _BY_BYTES else named


def compared_alike(schema: pa.Schema, columns: StructType) -> pa.Schema:
    """Return the schema of rows without the texts that Spark does not compare byte by byte: CHAR(n) is padded by blanks."""
    others = {one.name for one in columns if collation_of(one.dataType) is not None or _PADDED in one.metadata}
    return pa.schema([field for field in schema if field.name not in others])


def warn_of_ignored_collations(rows: DataFrame) -> None:
    """Log a warning for each column of `rows` with a collation."""
    for field in rows.schema:
        if (collation := collation_of(field.dataType)) is not None:
            log.warning(
                "column %r has the collation %s, which has no effect here, since texts are compared byte by byte: "
                "compute before the query what is to be equal, such as lower(%s) COLLATE UTF8_BINARY",
                field.name,
                collation,
                field.name,
            )
