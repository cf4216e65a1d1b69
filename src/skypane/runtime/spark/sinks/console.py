"""Answers on the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink
from skypane.wording import counted


@dataclass(frozen=True)
class Console(Sink):
    """Prints the answers of each micro-batch, at most `rows` rows.

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=sp.Console(rows=5)
    ... )
    """

    rows: int = 20

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        if answers.row_count:
            print(f"batch {batch_id}: {counted(len(answers.windows), 'windows')}, {counted(answers.row_count, 'rows')}")  # noqa: T201 - this sink prints
            answers.dataframe(spark).show(self.rows, truncate=False)
