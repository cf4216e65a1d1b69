"""The streaming engine: what happens to one micro-batch, from its rows to its commit (design, "On Spark").

    lift      one job: rows -> partials in files, reports                          plq.py
    advance   the policy sees what came and moves the punctuation                  operators/advance.py
    answer    the windows that it completes, in the driver or in one more job      wlq.py
    deliver   answers and rejected rows go to their sinks, by batch id             sinks.py, rejects.py
    commit    one manifest, atomically; then files that nothing needs are removed  ledger.py

A kill at any moment leaves either the manifest before the batch or the one after it. Answers depend on the rows and
the manifest alone, so the replayed batch gives the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.control.exchange import Exchange, Layout
from skypane.control.placement import Placement, place
from skypane.control.splitting import Splitting
from skypane.metrics import BatchMetrics
from skypane.operators.advance import Advance, advance
from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.runtime.spark.engine import plq, rejects, wlq
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.plq import REJECTED, LiftStage, PaneLevel
from skypane.runtime.spark.engine.rejects import FutureStage
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.engine.telemetry import Decisions, Timer, batch_metrics
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import PARTIALS, PartialRef, Store, attempt_name
from skypane.types import CheckpointError, ConfigError

log = logging.getLogger(__name__)

ANSWERS = "answers"
DRIVER_ROWS = 400_000
"""Rows that the driver merges for keeping, at most; more of them lie in partials that are large enough as they are."""
MERGED = 99_999
"""Task number, in a file's name, of the partials that the driver merged."""


@dataclass
class Workers:
    """How many workers each level has; may be changed while the query runs, and holds from the next batch on."""

    plq: int
    wlq: int

    def __post_init__(self) -> None:
        for level in ("plq", "wlq"):
            workers = getattr(self, level)
            if not isinstance(workers, int) or workers < 1:
                raise ConfigError(f"{level}_workers must be a whole number of at least 1, got {workers!r}")


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


class Engine:
    """The function that foreachBatch calls; holds the state after the last committed batch."""

    def __init__(
        self, setting: Setting, workers: Workers, on_batch: Callable[[BatchMetrics], None] | None = None
    ) -> None:
        self._setting = setting
        self._plan = setting.plan
        self._workers = workers
        self._on_batch = on_batch
        self._store = Store.at(setting.checkpoint).child("skypane")
        self._partials = self._store.child(PARTIALS)
        self._rejected = self._store.child(REJECTED)
        self.ledger = Ledger(self._store)
        owner = self.ledger.claim({**self._plan.describe(), **_columns(setting.rows)})
        for taker in (setting.output, setting.late):
            if taker is not None:
                taker.open(owner)
        manifest = self.ledger.latest()
        self._state = State.restored(self._plan, manifest) if manifest else State.initial(self._plan)
        self._exchange = Exchange()
        #: what made the query fail, in full
        self.error: Exception | None = None
        self._window_worker = self._plan.window_query(setting.rows).worker()
        self._remove_leftovers()

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Process one micro-batch; one that the ledger already holds is done."""
        if batch_id == self._state.batch_id:
            log.info("batch %d is in the ledger already", batch_id)
            return
        try:
            self._check_next(batch_id)
            metrics = self._process(rows, batch_id)
        except Exception as error:
            # Spark 4.3 looks for the cause with a regular expression that overflows the stack on a long message.
            log.exception("batch %d failed", batch_id)
            self.error = error
            message = f"skypane: batch {batch_id} failed: {type(error).__name__}: {str(error)[:500]}"
            raise RuntimeError(message) from None
        self._tell(metrics)

    def _check_next(self, batch_id: int) -> None:
        """Spark counts batches without a gap; a gap means that one of the two checkpoints is not the other's."""
        if batch_id != self._state.batch_id + 1:
            raise CheckpointError(
                f"Spark's checkpoint goes on with batch {batch_id}, the ledger in {self._store.root} ends with batch "
                f"{self._state.batch_id}: one of them was removed or restored without the other; start with a new one"
            )

    def _tell(self, metrics: BatchMetrics) -> None:
        if self._on_batch is None:
            return
        try:
            self._on_batch(metrics)
        except Exception:  # the batch is committed: a listener that fails must not undo that
            log.exception("the listener failed on the metrics of batch %d", metrics.batch_id)

    def _process(self, rows: DataFrame, batch_id: int) -> BatchMetrics:
        timer, before = Timer(), self._state
        workers, exchange = replace(self._workers), self._exchange
        with timer("plq"):
            level = self._lift(rows, batch_id, exchange, workers)
        with timer("progress"):
            step = advance(self._plan.progress, self._plan.windows, before.progress, level.counts, level.sources)
            held = self._hold(level, step, batch_id)
            due = held.closed_by(step.state.punctuation)
            placement = place(len(due), wlq.distinct_rows(due), self._plan.windows.overlap, workers.wlq)
        with timer("wlq"):
            answers = self._answer(rows.sparkSession, due, placement, batch_id)
        with timer("sink"):
            self._deliver(rows, level, step, answers, batch_id)
        with timer("commit"):
            after = State(batch_id, step.state, held.retire(step.state.punctuation))
            decided = Decisions(exchange, self._setting.splitting.name, workers.plq, placement)
            metrics = batch_metrics(self._plan, after, level, step, answers, decided, timer)
            self.ledger.commit(after.manifest(metrics.to_json()))
            self._state = after
            self._remove_unneeded(before, level, answers)
        layout = None if exchange.needed else _layout(level, timer.seconds["wlq"])
        self._exchange = exchange.observe(layout, workers.plq)
        return replace(metrics, seconds=timer.stop())

    def _lift(self, rows: DataFrame, batch_id: int, exchange: Exchange, workers: Workers) -> PaneLevel:
        punctuation = self._state.progress.punctuation
        stage = LiftStage(
            plan=self._plan,
            store=self._store,
            batch_id=batch_id,
            first_open=None if punctuation is None else self._plan.windows.first_open(punctuation),
            keep_rejected=self._setting.late is not None,
        )
        routing = self._setting.splitting.route(workers.plq) if exchange.needed else None
        return plq.run(rows, stage, routing)

    def _hold(self, level: PaneLevel, step: Advance, batch_id: int) -> OpenPanes[PartialRef]:
        """Add the batch's partials to the open panes; merge for keeping the panes that lie in many small ones."""
        news = ((pane.count.pane, pane.ref) for pane in level.panes)
        held = self._state.open.without(step.given_up).add(news)
        panes = held.scattered(step.state.punctuation)
        if not panes or sum(ref.rows for pane in panes for ref in held.panes[pane]) > DRIVER_ROWS:
            return held
        read = self._partials.reader()
        merged = [self._plan.query.combine([read(ref) for ref in held.panes[pane]]) for pane in panes]
        refs = self._partials.write_partials(attempt_name(batch_id, MERGED), merged)
        return held.replace(zip(panes, refs, strict=True))

    def _answer(self, spark: SparkSession, due: list[wlq.RefTask], placement: Placement, batch_id: int) -> Answers:
        schema = self._setting.answers
        if placement.where == "driver":
            return wlq.in_driver(self._window_worker, self._store, due, schema)
        target = self._setting.output.stage() or self._store.child(ANSWERS)
        target.make()
        query = self._plan.window_query(self._setting.rows)
        runs = wlq.cut(due, placement.runs)
        return wlq.on_workers(spark, wlq.RunStage(query, self._store, target, f"{batch_id:012d}", runs, schema))

    def _deliver(self, rows: DataFrame, level: PaneLevel, step: Advance, answers: Answers, batch_id: int) -> None:
        self._setting.output.write(rows.sparkSession, answers, batch_id)
        if self._setting.late is None:
            return
        future = FutureStage(self._plan.gate, step.limit) if step.held and step.limit is not None else None
        rejected = rejects.gather(rows, self._setting.rows, level, self._store, future)
        self._setting.late.write(rows.sparkSession, rejected, batch_id)

    def _remove_unneeded(self, before: State, level: PaneLevel, answers: Answers) -> None:
        written = before.files | {pane.ref.file for pane in level.panes}
        self._partials.remove(written - self._state.files)
        self._rejected.remove(level.rejected_files)
        if answers.store is not None and answers.store == self._store.child(ANSWERS):
            answers.store.remove(answers.files)

    def _remove_leftovers(self) -> None:
        """Remove what tries that were never committed have left."""
        for store in (self._partials, self._rejected, self._store.child(ANSWERS)):
            store.make()
        self._partials.remove(set(self._partials.names()) - self._state.files)
        for leftover in (self._rejected, self._store.child(ANSWERS), self._setting.output.stage()):
            if leftover is not None:
                leftover.remove(leftover.names())


def _columns(schema: pa.Schema) -> dict[str, Any]:
    """Return what of the rows' schema a checkpoint depends on: the open panes' partials have it."""
    return {"columns": {field.name: str(field.type) for field in schema}, "column order": schema.names}


def _layout(level: PaneLevel, merge_seconds: float) -> Layout:
    panes = [pane.count.pane for pane in level.panes]
    return Layout(
        rows=level.rows,
        busy=tuple(task.busy for task in level.tasks),
        panes=len(set(panes)),
        partials=len(panes),
        merge_seconds=merge_seconds,
    )
