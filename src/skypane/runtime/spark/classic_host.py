"""A classic session as the place of an engine: its process runs the batches, beside Spark's Java."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane.control.costs import Costs
from skypane.locations import Location
from skypane.metrics import BatchMetrics
from skypane.operators.changes.comparison import QueryChange
from skypane.operators.query import kernel_families
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.kernels_ahead import prepare_kernels
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle
from skypane.runtime.spark.calibration import costs_of
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.query_changes import changes_of
from skypane.runtime.spark.engine_host import JobStart
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.input_status import InputStatus
from skypane.runtime.spark.machine.checkpoint_files import local_files
from skypane.runtime.spark.machine.executor_follower import follower_of
from skypane.runtime.spark.machine.interpreter import try_workers
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.runtime.spark.patient_start import patiently_started, with_sources
from skypane.runtime.spark.roll_clock import RollClock
from skypane.types import SkypaneError


class ClassicHost:
    """Makes engines in this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def check(self, settings: JobSettings) -> None:
        """Do nothing: each job can run here."""

    def costs(self) -> Costs:
        return costs_of(self._spark)

    def changes(self, description: EngineDescription) -> QueryChange:
        settings = description.settings
        store = DocumentStore.at(settings.checkpoint).child("skypane")
        return changes_of(store, Ledger(store), settings.plan, settings.schema, description.begin, settings.rows)

    def readmit(
        self, description: EngineDescription, reason: str, repair: Callable[[DataFrame], DataFrame] | None
    ) -> BatchMetrics | None:
        try_workers(self._spark)
        engine = description.engine()
        engine.finish_drain(self._spark)
        return engine.readmit(self._spark, reason, repair)

    def start(self, start: JobStart) -> StreamHandle:
        spark, description = self._spark, start.description
        try_workers(spark)
        prepare_kernels(kernel_families(description.settings.plan.queries))
        inputs, executors = InputStatus(), follower_of(spark) if description.settings.follows else None
        engine = description.engine(start.listeners, inputs, executors)
        engine.finish_drain(spark)
        lifecycle = BatchLifecycle(engine, lambda: engine.pause)
        if executors is not None:
            executors.runs = lifecycle.active
            executors.follow(engine.workers.plq)  # they start while Spark plans the first batch

        def handle_of(query: StreamingQuery) -> StreamHandle:
            listeners, ends = start.listeners, start.ends_by_itself
            return StreamHandle(query, engine, lifecycle, spark, inputs, listeners, ends_by_itself=ends)

        try:
            query = _started(start, start.reading(engine.columns), lifecycle, inputs)
        except KeyboardInterrupt:
            if lifecycle.query is not None:
                handle_of(lifecycle.query).stop()
            raise
        if any(sink.rolling() is not None for sink in description.settings.sinks.by_role.values()):
            RollClock(engine, spark, lifecycle.active).start()
        return handle_of(query)


def _started(start: JobStart, rows: DataFrame, lifecycle: BatchLifecycle, inputs: InputStatus) -> StreamingQuery:
    """Start the query, and make it known to its batches and its inputs."""
    checkpoint = Location.of(start.description.checkpoint)
    writer = start.writer(rows, lifecycle, checkpoint)

    def start_query() -> StreamingQuery:
        lifecycle.query = inputs.query = query = writer.start()
        return with_sources(query)

    try:
        # Ctrl-C in the middle of Spark's start would leave a query that runs, and no handle that stops it.
        with local_files(rows.sparkSession, checkpoint), interrupted_afterwards():
            return patiently_started(start_query)
    except Py4JJavaError as error:
        raise SkypaneError(
            f"Spark cannot start the query in {start.description.checkpoint}: {error.java_exception}; no rows of the "
            f"stream are lost: free disk space or grant write access there, and start again"
        ) from error
    except StreamingQueryException as error:
        raise SkypaneError(
            f"Spark cannot start the query in {start.description.checkpoint}: {cause(error)}; no rows of the stream are "
            f"lost: start again when the machine is less busy"
        ) from error
