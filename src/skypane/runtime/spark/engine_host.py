"""Where the engine of a job runs: in the process of a classic session, or beside a server of Spark Connect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skypane.control.costs import Costs
from skypane.locations import Location
from skypane.metrics import BatchMetrics
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.spark.batch_listeners import BatchListeners
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.reading_order import marked
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.spark_schema import pruned
from skypane.runtime.spark.triggers import Trigger, pace_of


@dataclass(frozen=True)
class JobStart:
    """One start of a job.

    rows       the rows with the columns that the plan reads; `whole` has those that nobody reads, too
    listeners  receive the metrics of each batch that is committed
    trigger    arguments of Spark's trigger(); None: each batch begins as soon as the one before is done
    name       name of the query in Spark
    """

    rows: DataFrame
    whole: DataFrame
    description: EngineDescription
    listeners: BatchListeners
    trigger: Trigger | None
    name: str | None

    @property
    def ends_by_itself(self) -> bool:
        """Whether the query ends when it has processed the rows that are there."""
        return pace_of(self.trigger) == math.inf

    def reading(self, columns: tuple[str, ...] | None) -> DataFrame:
        """Return the rows with the columns that the state of the checkpoint requires; None: with those of the plan.

        If the progress policy needs the order of reading, a further column has the unit of each row.
        """
        settings = self.description.settings
        rows = self.rows if columns is None else pruned(self.whole, settings.rows, columns)[0]
        return marked(self.whole, rows) if settings.plan.progress.needs_order else rows

    def writer(
        self, rows: DataFrame, batches: Callable[[DataFrame, int], Any], checkpoint: Location
    ) -> DataStreamWriter:
        """Return Spark's writer of the query, which calls `batches` with each micro-batch."""
        writer = rows.writeStream.foreachBatch(batches).option("checkpointLocation", checkpoint.spark)
        if self.name is not None:
            writer = writer.queryName(self.name)
        return writer if self.trigger is None else writer.trigger(**self.trigger)


class EngineHost(Protocol):
    """The place where the engines of jobs run."""

    def check(self, settings: JobSettings) -> None:
        """Raise ConfigError if a job of these settings cannot run here."""
        ...

    def costs(self) -> Costs:
        """Return what operations cost on the machine of the engine."""
        ...

    def changes(self, description: EngineDescription) -> QueryChange:
        """Return how the query differs from that of its checkpoint; see Job.changes()."""
        ...

    def readmit(
        self, description: EngineDescription, reason: str, repair: Callable[[DataFrame], DataFrame] | None
    ) -> BatchMetrics | None:
        """Process rejected rows once more; see Job.readmit()."""
        ...

    def start(self, start: JobStart) -> StreamHandle:
        """Start the query, or resume it from its checkpoint; see Job.start()."""
        ...
