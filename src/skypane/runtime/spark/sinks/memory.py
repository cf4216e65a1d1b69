"""Answers in the driver's memory."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError


class Memory(Sink):
    """Keeps the answers of the last `batches` batches of one query in the driver's memory, for tests and notebooks.

    >>> output = sp.Memory()
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=output)
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> output.table()["price"].to_pylist()
    [70.0]
    """

    job_formats: ClassVar[tuple[str, ...]] = ()  # a job could not read the answers

    def __init__(self, batches: int | None = None) -> None:
        most: object = batches
        if most is not None and not (isinstance(most, int) and most >= 1):
            raise ConfigError(f"Memory(batches) must be a whole number of at least 1, got {batches!r}")
        self._tables: dict[int, pa.Table] = {}
        self._batches = batches
        #: the query whose batches are kept, and what it sends; none before its first start
        self._taken: tuple[str, str] | None = None

    def open(self, claim: QueryStart) -> None:
        owner = (claim.query, claim.role)
        if self._taken is not None and self._taken != owner:
            raise ConfigError(
                f"this Memory() keeps the {self._taken[1]} of a query, and other batches have the same numbers: make one "
                f"for each query, and for each of its outputs"
            )
        self._taken = owner

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark
        # A new dictionary each time: another thread may be reading the old one.
        tables = {**self._tables, batch_id: answers.table()}
        while self._batches is not None and len(tables) > self._batches:
            del tables[next(iter(tables))]
        self._tables = tables

    def table(self) -> pa.Table:
        """Return all kept rows in batch order; raise LookupError before the first batch."""
        tables = self._tables
        if not tables:
            raise LookupError("no batch has been answered yet")
        return pa.concat_tables(tables.values())
