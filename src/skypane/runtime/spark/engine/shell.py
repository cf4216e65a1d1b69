"""The streaming engine's shell: a micro-batch from Spark's call to its commit, whatever the query (design, "On Spark").

    decide    what the laws of control say of the batch                            control.py
    run       the program: rows and state -> answers, rejected rows, new state     windowed.py
    deliver   answers and rejected rows go to their sinks, by batch id             sinks
    commit    one manifest, atomically; then files that nothing needs are removed  ledger.py
    observe   the laws of control see what the batch showed                        control.py

A kill at any moment leaves either the manifest before the batch or the one after it. Answers depend on the rows and
the manifest alone, so the replayed batch gives the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.control.splitting import Splitting
from skypane.control.workers import Workers
from skypane.metrics import BatchMetrics
from skypane.plan import Plan
from skypane.runtime.spark.engine.control import Control, ControlState
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import Batch, Outcome
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.engine.windowed import WindowedProgram
from skypane.runtime.spark.schema import spark_schema
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import PARTIALS, Store
from skypane.types import CheckpointError

log = logging.getLogger(__name__)

ANSWERS = "answers"


@dataclass(frozen=True)
class Setting:
    """A plan and all that is needed to run it on Spark; `rows` and `answers` are the schemas of what goes in and out."""

    plan: Plan
    rows: pa.Schema
    answers: pa.Schema
    checkpoint: str
    output: Sink
    late: Sink | None
    splitting: Splitting


@dataclass(frozen=True, slots=True)
class Standing:
    """What is true after `batch_id`, the last batch committed (-1: none yet)."""

    batch_id: int
    state: State
    control: ControlState
    fingerprint: Fingerprint
    drains: int = 0

    @classmethod
    def restored(cls, program: WindowedProgram, control: Control, manifest: Manifest | None) -> Self:
        if manifest is None:
            return cls(-1, program.init(), control.init(), Fingerprint())
        return cls(
            manifest.batch_id,
            program.restore(manifest.progress, manifest.operator),
            control.restore(manifest.control),
            Fingerprint(**manifest.fingerprint),
            manifest.drains,
        )

    def manifest(self, metrics: BatchMetrics) -> Manifest:
        return Manifest(
            batch_id=self.batch_id,
            fingerprint=self.fingerprint.to_json(),
            progress=dict(self.state.progress.snapshot()),
            operator=self.state.snapshot(),
            control=self.control.snapshot(),
            metrics=metrics.to_json(),
            drains=self.drains,
        )


class Engine:
    """The function that foreachBatch calls; holds what is true after the last committed batch."""

    def __init__(
        self, setting: Setting, workers: Workers, on_batch: Callable[[BatchMetrics], None] | None = None
    ) -> None:
        self._setting = setting
        self._on_batch = on_batch
        self._store = Store.at(setting.checkpoint).child("skypane")
        self._partials, self._rejected, self._answers = (
            self._store.child(name) for name in (PARTIALS, REJECTED, ANSWERS)
        )
        self._control = Control(setting.splitting, workers)
        self.ledger = Ledger(self._store)
        owner = self.ledger.claim({**setting.plan.describe(), **_columns(setting.rows)})
        for sink in self._sinks:
            sink.open(owner)
        self._program = WindowedProgram(
            setting.plan,
            setting.rows,
            setting.answers,
            store=self._store,
            staged=setting.output.stage() or self._answers,
            keep_rejected=setting.late is not None,
            splitting=setting.splitting.name,
        )
        self._standing = Standing.restored(self._program, self._control, self.ledger.latest())
        #: what scale() has asked for since the last batch began
        self._request: Workers | None = None
        self._began: float | None = None
        self._remove_leftovers()

    @property
    def workers(self) -> Workers:
        """The workers that the next batch may use."""
        return self._request or self._standing.control.workers

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Ask for other numbers of workers from the next batch on; kept in the ledger when that batch is committed."""
        now = self.workers
        self._request = Workers(now.plq if plq is None else plq, now.wlq if wlq is None else wlq)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Process one micro-batch of Spark's; one that the ledger already holds is done."""
        batch_id += self._standing.drains  # which Spark has not counted
        if batch_id == self._standing.batch_id:
            log.info("batch %d is in the ledger already", batch_id)
            return
        self._check_next(batch_id)
        self._tell(self._process(rows, batch_id))

    def drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Answer what is still open as one more batch, if anything is; no batch of Spark's may be under way.

        It is noted before a sink hears of it, so that after a kill the same batch comes again before any other.
        """
        if self._standing.state.drained:
            return None
        self.ledger.begin_drain(self._standing.batch_id + 1)
        return self.finish_drain(spark)

    def finish_drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Do the drain that was begun, if one was, and not committed."""
        if not self.ledger.drain_begun:
            return None
        rows = spark.createDataFrame([], spark_schema(self._setting.rows))
        metrics = self._process(rows, self._standing.batch_id + 1, drain=True)
        self._tell(metrics)
        return metrics

    @property
    def _sinks(self) -> list[Sink]:
        return [sink for sink in (self._setting.output, self._setting.late) if sink is not None]

    def _check_next(self, batch_id: int) -> None:
        """Spark counts batches without a gap; a gap means that one of the two checkpoints is not the other's."""
        if batch_id != self._standing.batch_id + 1:
            raise CheckpointError(
                f"Spark's checkpoint goes on with batch {batch_id - self._standing.drains}, the ledger in {self._store.root} ends with batch "
                f"{self._standing.batch_id}: one of them was removed or restored without the other; start with a new one"
            )

    def _tell(self, metrics: BatchMetrics) -> None:
        if self._on_batch is None:
            return
        try:
            self._on_batch(metrics)
        except Exception:  # the batch is committed: a listener that fails must not undo that
            log.exception("the listener failed on the metrics of batch %d", metrics.batch_id)

    def _process(self, rows: DataFrame, batch_id: int, *, drain: bool = False) -> BatchMetrics:
        timer, before = Timer(), self._standing
        control, interval = self._requested(before.control), self._interval(timer)
        batch = Batch(batch_id, rows, self._control.decide(control), timer, interval)
        outcome = (self._program.drain if drain else self._program.run)(batch, before.state)
        with timer("sink"):
            self._deliver(rows, outcome, batch_id)
        with timer("commit"):
            # A drain shows nothing of how long batches take.
            control = control if drain else self._control.observe(control, outcome.measured)
            after = Standing(batch_id, outcome.state, control, outcome.fingerprint, before.drains + drain)
            metrics = replace(outcome.metrics, seconds=timer.stop())
            self.ledger.commit(after.manifest(metrics))
            self._standing = after
            self._remove_unneeded(before, outcome)
        return replace(metrics, seconds=timer.stop())

    def _requested(self, control: ControlState) -> ControlState:
        """Return the state of control with the workers that have been asked for, if any have."""
        request, self._request = self._request, None
        return control if request is None else replace(control, workers=request)

    def _interval(self, timer: Timer) -> float | None:
        before, self._began = self._began, timer.began
        return None if before is None else timer.began - before

    def _deliver(self, rows: DataFrame, outcome: Outcome[State], batch_id: int) -> None:
        self._setting.output.write(rows.sparkSession, outcome.answers, batch_id)
        if self._setting.late is not None and outcome.rejected is not None:
            self._setting.late.write(rows.sparkSession, outcome.rejected, batch_id)

    def _remove_unneeded(self, before: Standing, outcome: Outcome[State]) -> None:
        self._partials.remove((before.state.files | outcome.written) - outcome.state.files)
        self._rejected.remove(outcome.rejected_files)
        if outcome.answers.store == self._answers:
            self._answers.remove(outcome.answers.files)

    def _remove_leftovers(self) -> None:
        """Remove what tries that were never committed have left."""
        for store in (self._partials, self._rejected, self._answers):
            store.make()
        self._partials.remove(set(self._partials.names()) - self._standing.state.files)
        for leftover in (self._rejected, self._answers, self._setting.output.stage()):
            if leftover is not None:
                leftover.remove(leftover.names())


def _columns(schema: pa.Schema) -> dict[str, Any]:
    """Return what of the rows' schema a checkpoint depends on: the open panes' partials have it."""
    return {"columns": {field.name: str(field.type) for field in schema}, "column order": schema.names}
