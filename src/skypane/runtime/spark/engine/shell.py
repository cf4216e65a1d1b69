"""The streaming engine's shell: a micro-batch from Spark's call to its commit, whatever the query (design, "The way of one micro-batch").

    decide    what the laws of control say of the batch                            control.py
    run       the program: rows and state -> answers, rejected rows, new state     windowed.py, continuous.py
    deliver   answers and rejected rows go to their sinks, by batch id             sinks
    commit    one manifest, atomically; then files that nothing needs are removed  ledger.py
    observe   the laws of control see what the batch showed                        control.py

A kill at any moment leaves either the manifest before the batch or the one after it. Answers depend on the rows and
the manifest alone, so the replayed batch gives the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.control.workers import Workers
from skypane.metrics import BatchMetrics
from skypane.runtime.spark.engine import fingerprint
from skypane.runtime.spark.engine.continuous import ContinuousState
from skypane.runtime.spark.engine.control import Control, ControlState
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.partials import PARTIALS
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import Batch, Outcome
from skypane.runtime.spark.engine.programs import program_of
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.engine.standing import Standing
from skypane.runtime.spark.engine.takeover import take_over, tidy
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.schema import spark_schema
from skypane.runtime.spark.sources.many.watching import Told
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError, SkypaneError

log = logging.getLogger(__name__)

ANSWERS = "answers"


class Engine:
    """The function that foreachBatch calls; holds what is true after the last committed batch."""

    def __init__(
        self,
        setting: Setting,
        workers: Workers,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        told: Callable[[], Told] = Told,
        pace: float = 0.0,
    ) -> None:
        """`pace`: seconds from one batch to the next by the trigger; 0: at once, infinite: nothing more comes."""
        self._setting = setting
        self._pace = pace
        self._on_batch = on_batch
        self._told = told
        self._store = Store.at(setting.checkpoint).child("skypane")
        self._partials, self._rejected, self._answers = (
            self._store.child(name) for name in (PARTIALS, REJECTED, ANSWERS)
        )
        self._control = Control.of(setting, workers)
        self.ledger = Ledger(self._store)
        take_over(self.ledger, self._store, setting)
        ownership = self.ledger.ownership
        self._program = program_of(setting, self._store, setting.output.stage(ownership.driver) or self._answers)
        with ownership.in_charge():
            self._standing = Standing.restored(self._program, self._control, self.ledger.latest())
            tidy(ownership, self._partials, self._standing.state.files, (self._rejected, self._answers))
        #: what scale() has asked for since the last batch began
        self._request: Workers | None = None
        self._began: float | None = None

    @property
    def checkpoint(self) -> str:
        return self._setting.checkpoint

    @property
    def workers(self) -> Workers:
        """The workers that the next batch may use."""
        return self._request or self._standing.control.workers

    def front(self) -> pa.Table:
        """Return the front after the last committed batch, of a continuous skyline."""
        state = self._standing.state
        if not isinstance(state, ContinuousState):
            raise SkypaneError(
                "this query answers windows and keeps no front: read its output, or ask for sp.continuous_skyline"
            )
        return state.current

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Ask for other numbers of workers from the next batch on; kept in the ledger when that batch is committed.

        Raises ConfigError for numbers that cannot be, or that the elastic law may not have.
        """
        now = self.workers
        request = Workers(now.plq if plq is None else plq, now.wlq if wlq is None else wlq)
        self._control.scaled(self._standing.control, request)
        self._request = request

    @property
    def explanation(self) -> str:
        """Why there are as many workers as there are, in one line."""
        return self._control.explained(self._standing.control)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Process one micro-batch of Spark's; one that the ledger already holds is only read."""
        batch_id += self._standing.drains  # which Spark has not counted
        with self.ledger.ownership.in_charge():
            self.ledger.ownership.check()
            if batch_id == self._standing.batch_id:
                self._read_again(rows, batch_id)
                return
            self._check_next(batch_id)
            metrics = self._process(rows, batch_id)
        self._tell(metrics)

    def drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Answer what is still open as one more batch, if anything is; no batch of Spark's may be under way.

        It is noted before a sink hears of it, so that after a kill the same batch comes again before any other.
        """
        if self._standing.state.drained:
            return None
        self.ledger.ownership.check()
        self.ledger.begin_drain(self._standing.batch_id + 1)
        return self.finish_drain(spark)

    def finish_drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Do the drain that was begun, if one was, and not committed."""
        if not self.ledger.drain_begun:
            return None
        rows = spark.createDataFrame([], spark_schema(self._setting.schema))
        with self.ledger.ownership.in_charge():
            metrics = self._process(rows, self._standing.batch_id + 1, drain=True)
        self._tell(metrics)
        return metrics

    def _read_again(self, rows: DataFrame, batch_id: int) -> None:
        """Read the rows of a batch that is in the ledger, so that operators before the engine keep their state of it.

        They must be the rows that it was made of: if Spark has lost its record of the batch, it fills it anew, and what
        was not in it before would be lost.
        """
        read, known = fingerprint.read(rows, self._setting.plan.time), self._standing.fingerprint
        if read != known:
            raise CheckpointError(
                f"batch {batch_id} is in the ledger with {known.rows} rows, and Spark brings it again with {read.rows} "
                f"rows, or with other event times: Spark's record of it "
                f"(offsets/{batch_id - self._standing.drains} in the checkpoint) was lost, or the source or what stands before the query gives other rows each time. Restore the whole "
                f"checkpoint from a copy, or start with a new one"
            )
        log.info("batch %d is in the ledger already", batch_id)

    def _check_next(self, batch_id: int) -> None:
        """Spark counts batches without a gap; a gap means that one of the two checkpoints is not the other's."""
        standing = self._standing
        if batch_id != standing.batch_id + 1:
            raise CheckpointError(
                f"Spark's checkpoint goes on with batch {batch_id - standing.drains}, the ledger in {self._store.root} "
                f"ends with batch {standing.batch_id - standing.drains}: one of them was removed or restored without the "
                f"other; start with a new one"
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
        asked = self._requested(before.control)
        control, steering = self._control.decide(asked)
        batch = Batch(batch_id, rows, steering, timer, self._interval(timer))
        outcome = (self._program.drain if drain else self._program.run)(batch, before.state)
        with timer("sink"):
            self._deliver(rows, outcome, batch_id)
        told = self._told()
        with timer("commit"):
            # A drain shows nothing of how long batches take, and Spark knows nothing of it.
            seen = before.fingerprint if drain else outcome.fingerprint
            overrun = max(0.0, timer.stop()["total"] - self._pace)
            measured = replace(outcome.measured, backlog=told.backlog, overrun=overrun, sized=told.sized)
            control = asked if drain else self._control.observe(control, measured)
            after = Standing(batch_id, outcome.state, control, seen, before.drains + drain)
            if kept := sorted(outcome.written & outcome.state.files):
                self._partials.sync(*kept, "")
        # The manifest cannot hold how long it took to write it: whoever asks later hears what the listener heard.
        decisions = (*outcome.metrics.decisions, *told.decisions)
        metrics = replace(outcome.metrics, seconds=timer.stop(), inputs=told.inputs, decisions=decisions)
        self.ledger.commit(after.manifest(self._control, metrics))
        self._standing = after
        self._remove_unneeded(before, outcome)
        return metrics

    def _requested(self, control: ControlState) -> ControlState:
        """Return the state of control with the workers that have been asked for, if any have."""
        request, self._request = self._request, None
        return control if request is None else self._control.scaled(control, request)

    def _interval(self, timer: Timer) -> float | None:
        before, self._began = self._began, timer.began
        return None if before is None else timer.began - before

    def _deliver(self, rows: DataFrame, outcome: Outcome[Any], batch_id: int) -> None:
        driver = self.ledger.ownership.driver
        self.ledger.ownership.check()
        self._setting.output.write(rows.sparkSession, replace(outcome.answers, driver=driver), batch_id)
        if self._setting.late is not None and outcome.rejected is not None:
            self._setting.late.write(rows.sparkSession, replace(outcome.rejected, driver=driver), batch_id)
        if self._setting.front is not None and outcome.current is not None:
            self._setting.front.write(rows.sparkSession, replace(outcome.current, driver=driver), batch_id)

    def _remove_unneeded(self, before: Standing, outcome: Outcome[Any]) -> None:
        ownership = self.ledger.ownership
        ownership.remove(self._partials, (before.state.files | outcome.written) - outcome.state.files)
        ownership.remove(self._rejected, outcome.rejected_files)
        if outcome.answers.store == self._answers:
            ownership.remove(self._answers, outcome.answers.files)
