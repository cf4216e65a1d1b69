"""Answers on the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.sink import Sink
from skypane.wording import counted


@dataclass(frozen=True)
class Console(Sink):
    """Prints the answers of each batch, at most `rows` of them."""

    rows: int = 20

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        if answers.row_count:
            print(f"batch {batch_id}: {counted(len(answers.windows), 'windows')}, {counted(answers.row_count, 'rows')}")  # noqa: T201 - that is its job
            answers.dataframe(spark).show(self.rows, truncate=False)
