"""Answers passed to a writer row by row, as PySpark's `foreach` passes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError


@dataclass(frozen=True)
class Foreach(Sink):
    """Passes each row to a writer of PySpark's `foreach`, at least once, in the driver.

    A batch that comes again after a kill has the same id and the same rows, which open() may refuse by returning False.

    writer  a function of a Row, or an object with process(row), and if it likes with open(partition_id, epoch_id), where
            the partition is 0 and the epoch the id of the batch, and close(error)

    >>> output = sp.Foreach(lambda row: print(row.price))
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=output)
    """

    writer: Any

    job_formats: ClassVar[tuple[str, ...]] = ()
    """No job file can have a writer."""

    def __post_init__(self) -> None:
        if not callable(self.writer) and not callable(getattr(self.writer, "process", None)):
            raise ConfigError(
                f"writer must be a function of a row, or an object with process(row), got {self.writer!r}"
            )

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        if not answers.row_count:
            return
        process = getattr(self.writer, "process", None) or self.writer
        error: Exception | None = None
        try:
            if getattr(self.writer, "open", _opened)(0, batch_id):
                for row in answers.dataframe(spark).toLocalIterator():
                    process(row)
        except Exception as raised:
            error = raised
            raise
        finally:
            getattr(self.writer, "close", _closed)(error)


def _opened(_partition: int, _epoch: int) -> bool:
    return True


def _closed(_error: Exception | None) -> None:
    pass
