"""Rows on their way to a sink: tables in the driver, or files that the workers wrote."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.schema import spark_schema
from skypane.runtime.spark.store import Store


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of one batch for one sink; they are in `tables`, or else in `files` (parquet) of `store`.

    windows   the number and the row count of each window that is answered, in order; empty for rejected rows
    driver    name of the start of the query that delivers them (see sinks/claim.py)
    """

    schema: pa.Schema
    row_count: int
    windows: tuple[tuple[int, int], ...] = ()
    tables: tuple[pa.Table, ...] = ()
    store: Store | None = None
    files: tuple[str, ...] = ()
    driver: str = "driver"

    def table(self) -> pa.Table:
        """Return all rows; they must fit the driver."""
        tables = self.tables
        if self.store is not None:
            tables = tuple(self.store.read_parquet(name, self.schema) for name in self.files)
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def dataframe(self, spark: SparkSession) -> DataFrame:
        """Return all rows as a DataFrame."""
        if not self.files or self.store is None:
            # In one piece: Spark reads the pieces of a table until it comes to one without rows.
            return spark.createDataFrame(self.table().combine_chunks(), spark_schema(self.schema))
        return spark.read.schema(spark_schema(self.schema)).parquet(*(self.store.url(name) for name in self.files))
