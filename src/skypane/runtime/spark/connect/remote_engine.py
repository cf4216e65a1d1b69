"""The engine of a query as a client of Spark Connect sees it: by its checkpoint, which the server reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.control.parallelism import Workers
from skypane.metrics import BatchMetrics
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.spark.connect.committed_reader import CommittedReader, change_in_words
from skypane.runtime.spark.connect.server_call import bytes_from_server, from_server
from skypane.runtime.spark.connect.single_batch import DrainWork, FinishWork, ReadmitWork, run_beside_server
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.snapshots import from_json


class RemoteEngine:
    """Reads and requests what Engine holds and does; see EngineControl. Each call runs a small job on the server."""

    def __init__(self, description: EngineDescription, spark: SparkSession) -> None:
        self._description = description
        self._reader = CommittedReader(description)
        self._spark = spark

    @property
    def checkpoint(self) -> str:
        return self._description.checkpoint

    @property
    def workers(self) -> Workers:
        return from_json(Workers, from_server(self._spark, self._reader.control)["workers"])

    @property
    def explanation(self) -> str:
        return str(from_server(self._spark, self._reader.control)["explanation"])

    def history(self, last: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = from_server(self._spark, partial(self._reader.history, last))
        return found

    def metrics_after(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the metrics of the batches after `batch_id`, oldest first."""
        found: list[dict[str, Any]] = from_server(self._spark, partial(self._reader.metrics_after, batch_id))
        return found

    def front(self) -> pa.Table:
        return pa.ipc.open_stream(bytes_from_server(self._spark, self._reader.front)).read_all()

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        from_server(self._spark, partial(self._reader.scale, plq, wlq))

    def changes(self) -> QueryChange:
        """Return how the query differs from that of the checkpoint; see Job.changes()."""
        return change_in_words(from_server(self._spark, self._reader.changes))

    def starting(self) -> dict[str, Any]:
        """Check that a start can go on from the checkpoint, and return what it has to know."""
        found: dict[str, Any] = from_server(self._spark, self._reader.start)
        return found

    @property
    def has_begun(self) -> bool:
        return bool(from_server(self._spark, self._reader.has_begun))

    def finish(self) -> BatchMetrics | None:
        """Finish a drain or a readmission that was begun."""
        return self._outside(self._spark, FinishWork(self._description))

    def drain(self, spark: SparkSession) -> BatchMetrics | None:
        return self._outside(spark, DrainWork(self._description))

    def publish(self, spark: SparkSession) -> None:
        """Do nothing: no rows wait, as a sink with roll= is refused (server_checks.py)."""

    def readmit(
        self, spark: SparkSession, reason: str, repair: Callable[[DataFrame], DataFrame] | None
    ) -> BatchMetrics | None:
        return self._outside(spark, ReadmitWork(self._description, reason, repair))

    def _outside(self, spark: SparkSession, work: Callable[[SparkSession], None]) -> BatchMetrics | None:
        """Run work outside the batches of the query, and return the metrics of the last batch that it commits."""
        before = self.history(1)
        run_beside_server(spark, work)
        made = self.metrics_after(before[0]["batch_id"] if before else -1)
        return BatchMetrics.from_json(made[-1]) if made else None
