"""The program of a windowed query: the processing of one micro-batch (design, "The way of one micro-batch").

lift      rows become partials of open panes, and the punctuation moves             ingest.py
answer    windows that it completes are answered in the driver or in one more job   wlq.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.control.measurements import BatchMeasurements, RunWork
from skypane.control.placement import DueWindows, PlacementChoice, place_windows
from skypane.operators.advance import ProgressStep, drained
from skypane.operators.query import DivisibleQuery
from skypane.plan import Plan
from skypane.runtime.memory_headroom import SHORTER_WINDOW, for_windows
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import wlq
from skypane.runtime.spark.engine.batch_metrics import batch_metrics
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.plq import LiftReports
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.machine.executors import workers_are_threads
from skypane.runtime.spark.sinks.batch_rows import BatchRows


class WindowedProgram:
    """Lifts rows into panes, and answers the windows that the punctuation completes.

    answer_schema   schema of the answers
    staged          folder to which workers write answers
    """

    def __init__(self, plan: Plan, intake: Ingest, answer_schema: pa.Schema, staged: DocumentStore) -> None:
        self._plan = plan
        self._intake = intake
        self._answer_schema = answer_schema
        self._staged = staged
        self._window_query = plan.window_query(intake.schema)
        self._window_worker = self._window_query.worker(for_windows(SHORTER_WINDOW))
        query = plan.query
        self._divisible = isinstance(query, DivisibleQuery) and query.divisible(intake.schema)
        self._compared_once = not self._divisible and self._window_query.compares_once(intake.schema)

    def init(self) -> WindowState:
        return WindowState.initial(self._plan)

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> WindowState:
        return WindowState.restored(self._plan, progress, operator)

    def run(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Process a batch."""
        return self._complete(batch, state, *self._intake.lift(batch, state))

    def drain(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Answer every window with a row that is not quarantined, as if a punctuation had ended the stream."""
        return self._complete(batch, state, LiftReports(()), drained(self._plan.progress, state.progress, state.open))

    def _complete(
        self, batch: MicroBatch, state: WindowState, level: LiftReports, step: ProgressStep
    ) -> BatchOutcome[WindowState]:
        timer = batch.timer
        with timer("progress"):
            panes, merged = self._intake.add(level, step, state, batch.batch_id, step.state.punctuation)
            due = panes.closed_by(step.state.punctuation)
            empty = panes.empty_by(step.state.punctuation, due)
            after = self._intake.after(level, step, state, due, panes.retire(step.state.punctuation))
            workers = batch.steering.workers.wlq
            keys = wlq.largest_partial(due) if self._divisible else 0
            windows = DueWindows(
                windows=len(due),
                row_count=wlq.distinct_row_count(due),
                overlap=self._plan.windows.overlap,
                workers=workers,
                keys=keys,
                compared_once=self._compared_once,
                threads=self._compared_once
                and workers_are_threads(lambda name: batch.rows.sparkSession.conf.get(name, None)),
            )
            placement = place_windows(windows, batch.steering.costs.value)
        with timer("wlq"):
            answers, runs = self._answer(batch.rows.sparkSession, due, placement.value, batch.batch_id)
        with timer("sink"):
            rejected = self._intake.rejected(level, step, state)
            ahead, fresh = self._intake.ahead(batch, step, state)
        after = replace(after, ahead=ahead)
        measured = BatchMeasurements(
            tasks=level.work,
            merge_seconds=timer.seconds["wlq"],
            interval=batch.interval,
            exchanged=batch.steering.routing is not None,
            runs=runs,
            lift_seconds=timer.seconds.get("plq", 0.0),
            due=windows,
            where=placement.value.where,
        )
        metrics = batch_metrics(self._plan, batch, after, level, step, placement, answers, measured)
        return BatchOutcome(
            state=after,
            answers=answers,
            rejected=rejected,
            written=frozenset(pane.ref.file for pane in level.panes) | merged | {ref.file for ref in fresh},
            rejected_files=frozenset(ref.file for ref in level.rejected_rows),
            fingerprint=level.fingerprint,
            metrics=replace(metrics, empty_windows=empty),
            measured=measured,
        )

    def _answer(
        self, spark: SparkSession, due: list[wlq.RefTask], place: PlacementChoice, batch_id: int
    ) -> tuple[BatchRows, tuple[RunWork, ...]]:
        """Return the answers, and the work of each run of windows."""
        if place.where == "driver":
            return wlq.in_driver(self._window_worker, self._intake.store, due, self._answer_schema)
        runs = wlq.cut(due, place.runs)
        stage = wlq.WindowStage(
            self._window_query,
            self._intake.store,
            self._staged,
            f"{batch_id:012d}",
            runs,
            self._answer_schema,
            place.parts,
        )
        return wlq.in_threads(stage) if place.where == "threads" else wlq.on_workers(spark, stage)
