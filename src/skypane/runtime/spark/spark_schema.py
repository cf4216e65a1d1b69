"""Conversion between the Arrow schema and the Spark schema of the same rows, and the choice of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skypane.types import ConfigError

_NO_TYPE = (PySparkException, AssertionError, TypeError)
"""Errors that PySpark raises for a type that Arrow does not have; which one depends on the type."""


_SENT: Final[Mapping[DataType, pa.DataType]] = {
    BooleanType(): pa.bool_(),
    ByteType(): pa.int8(),
    ShortType(): pa.int16(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    StringType(): pa.string(),
    BinaryType(): pa.binary(),
    DateType(): pa.date32(),
    TimestampType(): pa.timestamp("us", "UTC"),
    TimestampNTZType(): pa.timestamp("us"),
}
"""Types as Spark sends them to Python; of texts, unless spark.sql.execution.arrow.useLargeVarTypes is set."""
_LARGE: Final = "spark.sql.execution.arrow.useLargeVarTypes"


def struct_of(schema: str | StructType) -> StructType:
    """Return a schema that may be a text of DDL; raise ConfigError if it does not name columns and their types."""
    columns = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(columns, StructType):
        raise ConfigError(f'schema must name columns and their types, "id BIGINT, price DOUBLE", got {schema!r}')
    return columns


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """Return the Arrow schema of the rows of a static or streaming DataFrame, with times in UTC.

    Raises ConfigError if a column has a type that Arrow does not have, or if Spark cannot distinguish two columns.
    """
    _check_case(rows)
    try:
        return _in_utc(_sent(rows.sparkSession, rows.schema))
    except _NO_TYPE as error:
        for field in rows.schema:
            _check_type(rows.sparkSession, field)
        raise ConfigError(f"the rows cannot be transferred to Python: {error}") from error


def _check_case(rows: DataFrame) -> None:
    if rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    by_lower: dict[str, str] = {}
    for name in rows.columns:
        other = by_lower.setdefault(name.lower(), name)
        if other != name:
            raise ConfigError(f"columns {other!r} and {name!r} are the same to Spark: rename or drop one")


def _sent(spark: SparkSession, schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark sends the rows to Python.

    A job of Spark, which takes a tenth of a second, runs only for types that are not in the table above.
    """
    if spark.conf.get(_LARGE, "false") == "false" and all(_is_known(field.dataType) for field in schema):
        return pa.schema([pa.field(field.name, _known(field.dataType), field.nullable) for field in schema])
    return by_a_job(spark, schema)


def by_a_job(spark: SparkSession, schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark sends rows of any types to Python: that of a job over no rows."""
    sent: pa.Schema = spark.createDataFrame([], schema).toArrow().schema
    return sent


def _is_known(kind: DataType) -> bool:
    return kind in _SENT or isinstance(kind, DecimalType)


def _known(kind: DataType) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale) if isinstance(kind, DecimalType) else _SENT[kind]


def _check_type(spark: SparkSession, field: StructField) -> None:
    try:
        _sent(spark, StructType([field]))
    except _NO_TYPE as error:
        kind = field.dataType.simpleString()
        raise ConfigError(
            f"column {field.name!r} is of type {kind}, which cannot be transferred to Python: drop it, or cast it to a "
            f"number or a text"
        ) from error


def from_spark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches from Spark, with UTC as the zone of their times; all rows enter Python through this function.

    A time with zone is a point in time, counted from the epoch in UTC; Spark labels it with the session's current zone.
    Only the label changes: no value is shifted or copied.
    """
    known = wanted = None
    for batch in batches:
        if batch.schema != known:
            known, wanted = batch.schema, _in_utc(batch.schema)
        yield batch if wanted == known else _cast(batch, wanted)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in another schema; only columns of another type are cast."""
    pairs = zip(batch.columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays([c if c.type == kind else c.cast(kind) for c, kind in pairs], schema=schema)


def _in_utc(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_utc(field.type)) for field in schema], schema.metadata)


def _utc(kind: pa.DataType) -> pa.DataType:
    """Return the type with every time zone in it, at any depth, replaced by UTC."""
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
    """Return the Spark schema of rows of an Arrow schema.

    A time without zone becomes a TIMESTAMP_NTZ, because Spark adds the session's zone to its other timestamps when it
    converts them to Arrow. createDataFrame() would infer a zoned timestamp and shift the time by the session's zone.
    Raises ConfigError, naming the column, for a type that Spark does not have.
    """
    return StructType([_spark_field(field) for field in schema])


def _spark_field(field: pa.Field) -> StructField:
    try:
        return from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True)[0]
    except _NO_TYPE as error:
        raise ConfigError(
            f"column {field.name!r} of the answers is of type {field.type}, which Spark does not have: drop it, or "
            f"cast it to a number or a text"
        ) from error


def answer_schema(answers: pa.Schema, rows: StructType, schema: pa.Schema) -> StructType:
    """Return the Spark schema of `answers`; columns of `rows`, of Arrow schema `schema`, keep their Spark type."""
    kept = {field.name for field in answers if field in list(schema)}
    return StructType([
        rows[field.name] if field.name in kept else field for field in spark_schema(answers)
    ])  # fmt: skip


def pruned(rows: DataFrame, schema: pa.Schema, read: Iterable[str]) -> tuple[DataFrame, pa.Schema]:
    """Return the rows with only the columns `read`, and their Arrow schema; Spark skips the others at the source.

    If none is read, the result has one constant column, because an Arrow table without columns has no rows.
    """
    wanted = set(read)
    kept = [field for field in schema if field.name in wanted]
    if not kept:
        return rows.select(sf.lit(True).alias("row")), pa.schema([("row", pa.bool_())])  # noqa: FBT003 - a value
    if len(kept) == len(schema):
        return rows, schema
    return rows.select(*(field.name for field in kept)), pa.schema(kept)
