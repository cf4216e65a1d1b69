"""The schema of the same rows in Arrow and in Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """Return the schema that the rows of a DataFrame, static or streaming, have in Arrow."""
    return rows.sparkSession.createDataFrame([], rows.schema).toArrow().schema


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
