"""The schema of the same rows in Arrow and in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from skypane.types import ConfigError

_NO_TYPE = (PySparkException, AssertionError, TypeError)
"""What PySpark raises for a type that Arrow does not have: it depends on the type."""


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """Return the schema that the rows of a DataFrame, static or streaming, have in Arrow, their times in UTC.

    Raise ConfigError where they have none, or where Spark would not tell two columns apart.
    """
    _check_case(rows)
    try:
        return _in_utc(_sent(rows.sparkSession, rows.schema))
    except _NO_TYPE as error:
        for field in rows.schema:
            _check_type(rows.sparkSession, field)
        raise ConfigError(f"the rows cannot go to Python: {error}") from error


def _check_case(rows: DataFrame) -> None:
    if rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    by_lower: dict[str, str] = {}
    for name in rows.columns:
        other = by_lower.setdefault(name.lower(), name)
        if other != name:
            raise ConfigError(f"Spark does not tell columns {other!r} and {name!r} apart: rename or drop one")


def _sent(spark: SparkSession, schema: StructType) -> pa.Schema:
    """Return the schema that Spark gives rows on their way into Python."""
    sent: pa.Schema = spark.createDataFrame([], schema).toArrow().schema
    return sent


def _check_type(spark: SparkSession, field: StructField) -> None:
    try:
        _sent(spark, StructType([field]))
    except _NO_TYPE as error:
        kind = field.dataType.simpleString()
        raise ConfigError(
            f"column {field.name!r} is of type {kind}, which cannot go to Python: drop it, or cast it to a number or a text"
        ) from error


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
    Raises ConfigError, naming the column, for a type that Spark does not have.
    """
    return StructType([_spark_field(field) for field in schema])


def _spark_field(field: pa.Field) -> StructField:
    try:
        return from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True)[0]
    except _NO_TYPE as error:
        raise ConfigError(
            f"column {field.name!r} of the answers is of type {field.type}, which Spark does not have: leave it out, or "
            f"cast it to a number or a text"
        ) from error


def answer_schema(answers: pa.Schema, rows: DataFrame, schema: pa.Schema) -> StructType:
    """Return the schema of `answers` in Spark; the columns of `rows`, whose schema in Arrow is `schema`, keep theirs."""
    kept = {field.name for field in answers if field in list(schema)}
    return StructType([
        rows.schema[field.name] if field.name in kept else field for field in spark_schema(answers)
    ])  # fmt: skip
