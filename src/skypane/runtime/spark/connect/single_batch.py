"""Work of an engine outside the batches of its query, as a query of one batch: it runs where the batches run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.background import awaited, in_background
from skypane.runtime.spark.batch_lifecycle import failure
from skypane.runtime.spark.connect.server_errors import failed
from skypane.runtime.spark.connect.server_watch import end_with_server
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.patient_start import patiently_started


@dataclass(frozen=True)
class FinishWork:
    """Finishes a drain, or a batch of readmitted rows, that was begun."""

    description: EngineDescription

    def __call__(self, spark: SparkSession) -> None:
        self.description.engine().finish_drain(spark)


@dataclass(frozen=True)
class DrainWork:
    """Answers the open windows; see Engine.drain()."""

    description: EngineDescription

    def __call__(self, spark: SparkSession) -> None:
        engine = self.description.engine()
        engine.finish_drain(spark)
        engine.drain(spark)


@dataclass(frozen=True)
class ReadmitWork:
    """Processes rejected rows once more; see Engine.readmit()."""

    description: EngineDescription
    reason: str
    repair: Callable[[DataFrame], DataFrame] | None

    def __call__(self, spark: SparkSession) -> None:
        engine = self.description.engine()
        engine.finish_drain(spark)
        engine.readmit(spark, self.reason, self.repair)


@dataclass(frozen=True)
class _OnlyBatch:
    """The function of foreachBatch of a query whose rows do not matter."""

    work: Callable[[SparkSession], None]

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        try:
            end_with_server()
            self.work(rows.sparkSession)
        except BaseException as error:  # noqa: BLE001 - not only Exception: the process would end without a reason
            raise failure(batch_id, error) from None


def run_beside_server(spark: SparkSession, work: Callable[[SparkSession], None]) -> None:
    """Run `work`, which is pickled, in a Python process beside the server; raise SkypaneError with its cause."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()
    writer = rows.writeStream.foreachBatch(_OnlyBatch(work)).trigger(availableNow=True)
    query = patiently_started(writer.start)
    try:
        awaited(in_background(query.awaitTermination))
    except StreamingQueryException as error:
        raise failed(error) from error
