"""Answers passed to a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink


@dataclass(frozen=True)
class Call(Sink):
    """Passes each batch's answers to a function (DataFrame, batch id), which must be idempotent by the id."""

    function: Callable[[DataFrame, int], None]

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        self.function(answers.dataframe(spark), batch_id)
