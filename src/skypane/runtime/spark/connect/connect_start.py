"""Start a stream over Spark Connect: check the server, send the description of the engine, and return the handle."""

from __future__ import annotations

from collections.abc import Callable
from pickle import PicklingError

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from skypane.locations import Location
from skypane.metrics import BatchMetrics
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.spark.connect.metrics_polling import MetricsPolling
from skypane.runtime.spark.connect.patient_start import patiently_started
from skypane.runtime.spark.connect.remote_batches import RemoteBatches
from skypane.runtime.spark.connect.remote_engine import RemoteEngine
from skypane.runtime.spark.connect.server_batches import ServerBatches
from skypane.runtime.spark.connect.server_checks import check_server
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.input_status import InputStatus
from skypane.runtime.spark.machine.checkpoint_files import local_files
from skypane.runtime.spark.spark_schema import pruned
from skypane.runtime.spark.triggers import Trigger
from skypane.types import ConfigError, SkypaneError


def start_over_connect(
    rows: DataFrame,
    whole: DataFrame,
    description: EngineDescription,
    on_batch: Callable[[BatchMetrics], None] | None,
    when: Trigger | None,
    name: str | None,
) -> StreamHandle:
    """Start the query of a description on the server of `rows`; `whole` has the columns that nobody reads, too."""
    spark = rows.sparkSession
    check_sendable(description)
    check_server(spark)
    engine = RemoteEngine(description, spark)
    begun = engine.starting()
    polling = None if on_batch is None else MetricsPolling(on_batch, engine.metrics_after, begun["last"])
    if begun["unfinished"]:
        engine.finish()
    if begun["columns"] is not None:
        rows = pruned(whole, description.settings.rows, begun["columns"])[0]
    query = _started(rows, description, when, name)
    if polling is not None:
        polling.start()
    inputs = InputStatus()
    inputs.query = query
    settled = (lambda: None) if polling is None else polling.end
    return StreamHandle(query, engine, RemoteBatches(query, spark, description.checkpoint, settled), spark, inputs)


def _started(rows: DataFrame, description: EngineDescription, when: Trigger | None, name: str | None) -> StreamingQuery:
    checkpoint = Location.of(description.checkpoint)
    writer = rows.writeStream.foreachBatch(ServerBatches(description)).option("checkpointLocation", checkpoint.spark)
    if name is not None:
        writer = writer.queryName(name)
    if when is not None:
        writer = writer.trigger(**when)
    try:
        with local_files(rows.sparkSession, checkpoint), interrupted_afterwards():
            return patiently_started(writer.start)
    except PySparkException as error:
        raise SkypaneError(
            f"Spark cannot start the query in {description.checkpoint}: {cause(error)}; no rows of the stream are lost"
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
