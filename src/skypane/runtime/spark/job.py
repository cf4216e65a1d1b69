"""A streaming job that is ready to start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from skypane import kernels
from skypane.control.workers import Workers
from skypane.metrics import BatchMetrics
from skypane.runtime.spark.engine.shell import Engine, Setting
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.turns import Turns

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A continuous query on a streaming DataFrame; nothing runs before start()."""

    rows: DataFrame
    setting: Setting
    workers: Workers

    def start(
        self,
        *,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        trigger: str | None = None,
        name: str | None = None,
    ) -> StreamHandle:
        """Start the query, or go on where its checkpoint ends.

        on_batch  called with the metrics of every batch that is committed
        trigger   an interval such as "5 seconds"; "available now": take what is there, then end; None: at once, on and on
        Raises CheckpointError if the checkpoint belongs to another query.
        """
        kernels.warm(log.warning)
        engine = Engine(self.setting, self.workers, on_batch)
        spark = self.rows.sparkSession
        engine.finish_drain(spark)
        turns = Turns(engine)
        writer = self.rows.writeStream.foreachBatch(turns).option("checkpointLocation", self.setting.checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        if trigger is not None:
            writer = writer.trigger(**_trigger(trigger))
        turns.query = writer.start()
        return StreamHandle(turns.query, engine, turns, spark)


def _trigger(text: str) -> dict[str, Any]:
    return {"availableNow": True} if text.lower().replace("_", " ") == "available now" else {"processingTime": text}
