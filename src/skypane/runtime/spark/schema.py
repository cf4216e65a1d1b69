"""The schema of the same rows in Arrow and in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """Return the schema that the rows of a DataFrame, static or streaming, have in Arrow once they are in_utc()."""
    return _in_utc(rows.sparkSession.createDataFrame([], rows.schema).toArrow().schema)


def from_spark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as Spark sends them, their times named in UTC: every way of rows into Python leads through here.

    A time with zone is a point in time, counted from the epoch in UTC; Spark sends it with the name of the session's
    zone beside it, whichever that is now. Nothing is moved or copied.
    """
    known = wanted = None
    for batch in batches:
        if batch.schema != known:
            known, wanted = batch.schema, _in_utc(batch.schema)
        yield batch if wanted == known else _cast(batch, wanted)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in another schema; only columns of another type are touched."""
    pairs = zip(batch.columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays([c if c.type == kind else c.cast(kind) for c, kind in pairs], schema=schema)


def _in_utc(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_utc(field.type)) for field in schema], schema.metadata)


def _utc(kind: pa.DataType) -> pa.DataType:
    """Return the same type with each zone in it, however deep, replaced by UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_utc(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_utc(kind.key_type)), kind.item_field.with_type(_utc(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_utc(kind.value_type)))
    return kind


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema that rows of an Arrow schema have in Spark.

    A time without zone is a TIMESTAMP_NTZ: Spark gives its other timestamps the session's zone when they go to Arrow.
    createDataFrame() by itself would take the one for the other, and move it by the zone.
    """
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def answer_schema(answers: pa.Schema, rows: DataFrame, schema: pa.Schema) -> StructType:
    """Return the schema of `answers` in Spark; the columns of `rows`, whose schema in Arrow is `schema`, keep theirs."""
    kept = {field.name for field in answers if field in list(schema)}
    return StructType([
        rows.schema[field.name] if field.name in kept else field for field in spark_schema(answers)
    ])  # fmt: skip
