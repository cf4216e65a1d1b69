"""Rows for a sink: tables in the driver, or files that the workers wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.operators.stay_columns import are_stays
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.spark_schema import spark_schema


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of one micro-batch for one sink, either in `tables` or in `files` (parquet) of `store`.

    windows   number and row count of each answered window, in order; empty for rejected rows
    driver    name of the driver that delivers the rows (see sinks/folder_owner.py)
    check     raises CheckpointError if that driver has been fenced
    first     whether this is the driver's first batch, which an earlier driver may have delivered in part
    """

    schema: pa.Schema
    row_count: int
    windows: tuple[tuple[int, int], ...] = ()
    tables: Sequence[pa.Table] = ()
    store: DocumentStore | None = None
    files: tuple[str, ...] = ()
    driver: str = "driver"
    check: Callable[[], None] = lambda: None
    first: bool = False

    def table(self) -> pa.Table:
        """Return all rows; they must fit the driver."""
        return pa.concat_tables([self.schema.empty_table(), *self.parts()])

    @property
    def holds_stays(self) -> bool:
        """Whether the rows are stays; rejected rows, if they were read from a folder of stays, have the same columns."""
        return bool(self.windows) and are_stays(self.schema)

    def parts(self) -> Iterator[pa.Table]:
        """Yield all rows in order, one table or file at a time."""
        if self.store is None:
            yield from self.tables
        else:
            yield from (self.store.read_parquet(name, self.schema) for name in self.files)

    def dataframe(self, spark: SparkSession) -> DataFrame:
        """Return all rows as a DataFrame."""
        if not self.files or self.store is None:
            # One chunk: Spark stops reading the chunks of a table at the first one without rows.
            return spark.createDataFrame(self.table().combine_chunks(), spark_schema(self.schema))
        return spark.read.schema(spark_schema(self.schema)).parquet(*(self.store.url(name) for name in self.files))
