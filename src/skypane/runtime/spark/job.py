"""A streaming job that is ready to start."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from skypane import kernels, notebook
from skypane.control.workers import Workers
from skypane.metrics import BatchMetrics
from skypane.places import Place
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.handle import StreamHandle, java_there
from skypane.runtime.spark.machine.checkpoint_files import local_files
from skypane.runtime.spark.machine.interpreter import try_workers
from skypane.runtime.spark.told import InputsTold
from skypane.runtime.spark.turns import Turns
from skypane.types import ConfigError, SkypaneError, micros

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A continuous query on a streaming DataFrame; nothing runs before start()."""

    rows: DataFrame
    setting: Setting
    workers: Workers

    def __repr__(self) -> str:
        """The job in one line: what is asked of which windows, and where answers go."""
        said = "; ".join(f"{name}: {value}" for name, value in self._said())
        return f"<skypane job, not started: {said}>"

    def _repr_html_(self) -> str:
        return notebook.table("skypane job, not started", self._said())

    def _said(self) -> list[tuple[str, str]]:
        plan = self.setting.plan
        return [
            ("query", str(plan.query)),
            ("windows", plan.windows_in_words),
            ("progress", repr(plan.progress)),
            ("output", repr(self.setting.output)),
            ("late rows", "counted" if self.setting.late is None else repr(self.setting.late)),
            ("checkpoint", self.setting.checkpoint),
        ]

    def start(
        self,
        *,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        trigger: str | None = None,
        name: str | None = None,
    ) -> StreamHandle:
        """Start the query, or go on where its checkpoint ends.

        on_batch  called with the metrics of every batch that is committed, drains with them
        trigger   an interval such as "5 seconds"; "available now": take what is there, then end; None: at once, on and on
        Raises CheckpointError if the checkpoint belongs to another query, ConfigError if the trigger cannot be read, and
        SkypaneError if Spark cannot write to the checkpoint.
        """
        when = None if trigger is None else _trigger(trigger)
        with java_there(self.rows.sparkSession):  # the first batch may be through, and Java gone, before this returns
            return self._started(on_batch, when, name)

    def _started(
        self, on_batch: Callable[[BatchMetrics], None] | None, when: dict[str, Any] | None, name: str | None
    ) -> StreamHandle:
        spark = self.rows.sparkSession
        try_workers(spark)
        with interrupted_afterwards():
            kernels.warm(log.warning)
        told = InputsTold()
        engine = Engine(self.setting, self.workers, on_batch, told, pace=_pace(when))
        engine.finish_drain(spark)
        turns = Turns(engine)
        where = Place.of(self.setting.checkpoint)
        writer = self.rows.writeStream.foreachBatch(turns).option("checkpointLocation", where.spark)
        if name is not None:
            writer = writer.queryName(name)
        if when is not None:
            writer = writer.trigger(**when)
        try:
            with local_files(spark, where):
                turns.query = told.query = writer.start()
        except Py4JJavaError as error:
            raise SkypaneError(
                f"Spark cannot start the query in {self.setting.checkpoint}: {error.java_exception}; nothing of the stream "
                f"is lost: make room or give the right to write there, and start again"
            ) from error
        return StreamHandle(turns.query, engine, turns, spark, told)


def _pace(when: dict[str, Any] | None) -> float:
    """Return the seconds that Spark's trigger leaves between batches: none, or so many that nothing comes meanwhile."""
    if when is None:
        return 0.0
    return micros(when["processingTime"]) / 1e6 if "processingTime" in when else math.inf


def _trigger(text: str) -> dict[str, Any]:
    """Return the arguments of Spark's trigger(); ConfigError if `text` is neither an interval nor "available now"."""
    if not isinstance(text, str):
        raise ConfigError(f"trigger must be a text such as '5 seconds' or 'available now', got {text!r}")
    if text.lower().replace("_", " ") == "available now":
        return {"availableNow": True}
    try:
        interval = micros(text, "trigger")
    except ConfigError as error:
        raise ConfigError(f"{error}; or 'available now'") from None
    if interval < 0:
        raise ConfigError(f"trigger must not be negative, got {text!r}")
    return {"processingTime": f"{interval // 1_000} milliseconds"}
