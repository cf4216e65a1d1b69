"""Rows of a table in Spark's memory, as those of a file would be."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_THRESHOLD: Final = "spark.sql.execution.arrow.localRelationThreshold"


def cached_rows(spark: SparkSession, table: pa.Table, partitions: int) -> DataFrame:
    """Return a DataFrame of the rows, cached in so many partitions.

    Tables below 48 MB would be literals in each plan, which each step of Spark's planner copies: a million rows of four
    columns took 0.3 s for each operation on the DataFrame.
    """
    before = spark.conf.get(_THRESHOLD) or ""
    spark.conf.set(_THRESHOLD, "0")
    try:
        rows = spark.createDataFrame(table).repartition(partitions).cache()
    finally:
        spark.conf.set(_THRESHOLD, before)
    assert rows.count() == table.num_rows
    return rows
