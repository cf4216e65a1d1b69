"""A server of Spark Connect as the place of an engine: it gets a description of the engine, and makes it at a batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pickle import PicklingError

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.locations import Location
from skypane.metrics import BatchMetrics
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.spark.connect.metrics_polling import MetricsPolling
from skypane.runtime.spark.connect.remote_batches import RemoteBatches
from skypane.runtime.spark.connect.remote_engine import RemoteEngine
from skypane.runtime.spark.connect.server_batches import ServerBatches
from skypane.runtime.spark.connect.server_checks import check_server, check_sinks
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine_host import JobStart
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.input_status import InputStatus
from skypane.runtime.spark.machine.checkpoint_files import local_files
from skypane.runtime.spark.patient_start import patiently_started
from skypane.types import ConfigError, SkypaneError

log = logging.getLogger(__name__)


class ConnectHost:
    """Has a server make engines."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def check(self, settings: JobSettings) -> None:
        """Raise ConfigError for a sink whose rows would stay in the server, and for executors to request there."""
        check_sinks(settings.sinks)
        if settings.follows:
            raise ConfigError(
                'executors="follow" of elastic= requests executors, which a client of Spark Connect cannot: leave it '
                "out, and set spark.dynamicAllocation.enabled on the server, so that its executors follow the tasks"
            )

    def costs(self) -> Costs:
        return DEFAULT_COSTS  # the server's machine is another one

    def changes(self, description: EngineDescription) -> QueryChange:
        return RemoteEngine(description, self._spark).changes()

    def readmit(
        self, description: EngineDescription, reason: str, repair: Callable[[DataFrame], DataFrame] | None
    ) -> BatchMetrics | None:
        check_server(self._spark)
        return RemoteEngine(description, self._spark).readmit(self._spark, reason, repair)

    def start(self, start: JobStart) -> StreamHandle:
        spark, description = self._spark, start.description
        check_sendable(description)
        check_server(spark)
        engine = RemoteEngine(description, spark)
        begun = engine.starting()
        if begun["missed"] is not None:
            log.warning(begun["missed"])
        polling = MetricsPolling(start.listeners, engine.metrics_after, begun["last"])
        if begun["unfinished"]:
            engine.finish()
        inputs = InputStatus()

        def handle_of(query: StreamingQuery) -> StreamHandle:
            batches = RemoteBatches(query, spark, description.checkpoint, polling.end)
            listeners, ends = start.listeners, start.ends_by_itself
            return StreamHandle(query, engine, batches, spark, inputs, listeners, ends_by_itself=ends)

        try:
            query = _started(start, start.reading(begun["columns"]), inputs)
        except KeyboardInterrupt:
            if inputs.query is not None:
                handle_of(inputs.query).stop()
            raise
        polling.start()
        return handle_of(query)


def _started(start: JobStart, rows: DataFrame, inputs: InputStatus) -> StreamingQuery:
    checkpoint = Location.of(start.description.checkpoint)
    writer = start.writer(rows, ServerBatches(start.description), checkpoint)
    try:
        with local_files(rows.sparkSession, checkpoint), interrupted_afterwards():
            inputs.query = query = patiently_started(writer.start)
            return query
    except PySparkException as error:
        raise SkypaneError(
            f"Spark cannot start the query in {start.description.checkpoint}: {cause(error)}; no rows of the stream "
            f"are lost"
        ) from error


def check_sendable(description: EngineDescription) -> None:
    """Raise ConfigError if a query, a sink or a function in it cannot be pickled."""
    try:
        cloudpickle.dumps(description)  # type: ignore[no-untyped-call]  # PySpark's copy has no types
    except (PicklingError, TypeError, AttributeError) as error:  # pickle raises each of them for some objects
        raise ConfigError(
            f"the query cannot be sent to the Spark Connect server, because a function or a sink of yours cannot be "
            f"pickled ({error}): let it open files, locks and connections when it is called"
        ) from error
