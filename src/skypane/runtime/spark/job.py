"""A streaming job that is ready to start, and the handle of one that runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from skypane import kernels, notebook
from skypane.control.workers import Workers
from skypane.metrics import BatchMetrics
from skypane.places import Place
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.machine.interpreter import try_workers
from skypane.types import Length, SkypaneError

log = logging.getLogger(__name__)

ARROW_BATCH_ROWS = 100_000
"""Rows per Arrow batch into Python: the default of 10,000 costs a third more (bench/streaming.py)."""


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
        plan, windows = self.setting.plan, self.setting.plan.windows
        of = f"{Length(windows.length)!r} of {plan.time}, every {Length(windows.slide)!r}".replace("'", "")
        return [
            ("query", str(plan.query)),
            ("windows", of),
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

        on_batch  called with the metrics of every batch that is committed
        trigger   an interval such as "5 seconds"; "available now": take what is there, then end; None: at once, on and on
        Raises CheckpointError if the checkpoint belongs to another query.
        """
        try_workers(self.rows.sparkSession)
        kernels.warm(log.warning)
        engine = Engine(self.setting, self.workers, on_batch)
        writer = self.rows.writeStream.foreachBatch(_Batches(engine)).option(
            "checkpointLocation", Place.of(self.setting.checkpoint).spark
        )
        if name is not None:
            writer = writer.queryName(name)
        if trigger is not None:
            writer = writer.trigger(**_trigger(trigger))
        return StreamHandle(writer.start(), engine)


class _Batches:
    """Hands batches to the engine, in a session whose Arrow batches are large."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        rows.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", ARROW_BATCH_ROWS)
        self._engine(rows, batch_id)


class StreamHandle:
    """A running query: wait for it, stop it, look at it, change its workers."""

    def __init__(self, query: StreamingQuery, engine: Engine) -> None:
        self.query = query
        self._engine = engine

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, at most `timeout` seconds; return whether it has.

        Raises SkypaneError, with the cause, if the query failed.
        """
        try:
            # Spark takes fractions of a second, whatever its annotation says.
            ended = self.query.awaitTermination(timeout)  # type: ignore[arg-type]
        except StreamingQueryException as error:
            cause = self._engine.error or error
            raise SkypaneError(f"the query has failed: {str(cause)[:2000]}") from cause
        return ended is not False

    def stop(self) -> None:
        """Stop the query; a batch under way is lost here and replayed at the next start."""
        self.query.stop()

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing now: Spark's message, whether it runs, and what made it fail, if it has."""
        return {
            "active": self.query.isActive,
            "message": self.query.status["message"],
            "error": None if self._engine.error is None else str(self._engine.error),
        }

    def recent_metrics(self, last: int = 10) -> list[BatchMetrics]:
        """Return the metrics of the last batches, oldest first, those of earlier starts with them."""
        return [BatchMetrics.from_json(value) for value in self._engine.ledger.history(last)]

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Change the number of workers from the next batch on; there is no state to move.

        The numbers hold over a restart too, unless the job then asks for other ones than it did.
        """
        self._engine.scale(plq=plq, wlq=wlq)


def _trigger(text: str) -> dict[str, Any]:
    return {"availableNow": True} if text.lower().replace("_", " ") == "available now" else {"processingTime": text}
