"""Rows of batches as sinks of tables are given them, without a query that answers."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows

NO_SPARK = cast("SparkSession", None)
MOMENT = pa.timestamp("us", "UTC")
BOUNDS = [("window_start", MOMENT), ("window_end", MOMENT)]
SCHEMA = pa.schema([*BOUNDS, ("city", pa.string()), ("n", pa.int64())])
VERSIONS = pa.schema(
    [*BOUNDS, ("version", pa.int64()), ("empty", pa.bool_()), ("city", pa.string()), ("n", pa.int64())]
)
CHANGES = pa.schema(
    [*BOUNDS, ("version", pa.int64()), ("action", pa.string()), ("city", pa.string()), ("n", pa.int64())]
)
UPDATES = pa.schema([("action", pa.string()), ("action_time", MOMENT), ("id", pa.int64()), ("n", pa.int64())])
MINUTE = 60_000_000


def of(schema: pa.Schema, *rows: tuple[Any, ...]) -> BatchRows:
    """Return a batch of rows: (minute of the window, the other columns ...)."""
    whole = [(start * MINUTE, (start + 1) * MINUTE, *others) for start, *others in rows]
    columns = [pa.array([row[at] for row in whole], one.type) for at, one in enumerate(schema)]
    return BatchRows(schema, len(rows), ((0, len(rows)),) if rows else (), (pa.table(columns, schema=schema),))


def numbers(*found: int) -> BatchRows:
    return of(SCHEMA, *((0, "Oslo", n) for n in found))
