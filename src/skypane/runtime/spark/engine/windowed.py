"""The program of a windowed query: what it makes of one micro-batch (design, "The way of one micro-batch").

lift      one job: rows -> partials in files, reports                          plq.py
advance   the policy sees what came and moves the punctuation                  operators/advance.py
answer    the windows that it completes, in the driver or in one more job      wlq.py
reject    what may not enter, with its reason, for the late sink               rejects.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.measured import Measured
from skypane.control.placement import DueWindows, Place, Placement
from skypane.operators.advance import Advance, advance, drained
from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.runtime.spark.engine import partials, plq, rejects, wlq
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialRef, attempt_name
from skypane.runtime.spark.engine.plq import LiftStage, PaneLevel
from skypane.runtime.spark.engine.program import Batch, Outcome
from skypane.runtime.spark.engine.rejects import AheadStage
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.engine.telemetry import batch_metrics
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.store import Store

DRIVER_ROWS = 400_000
"""Rows that the driver merges for keeping, at most; more of them lie in partials that are large enough as they are."""
MERGED = 99_999
"""Task number, in a file's name, of the partials that the driver merged."""


class WindowedProgram:
    """Lifts rows into panes, and answers the windows that progress completes.

    schema          of the rows that come
    answer_schema   of the answers
    store           where partials are kept
    staged          where workers write answers
    """

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        answer_schema: pa.Schema,
        *,
        store: Store,
        staged: Store,
        keep_rejected: bool,
        costs: Costs = DEFAULT_COSTS,
    ) -> None:
        self._plan = plan
        self._schema = schema
        self._answer_schema = answer_schema
        self._store = store
        self._staged = staged
        self._keep_rejected = keep_rejected
        self._placement = Placement(costs)
        self._partials = store.child(PARTIALS)
        self._window_query = plan.window_query(schema)
        self._window_worker = self._window_query.worker()

    def init(self) -> State:
        return State.initial(self._plan)

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> State:
        return State.restored(self._plan, progress, operator)

    def run(self, batch: Batch, state: State) -> Outcome[State]:
        """Process a batch."""
        with batch.timer("plq"):
            level = plq.run(batch.rows, self._lift_stage(batch.batch_id, state), batch.steering.routing)
        with batch.timer("progress"):
            step = advance(self._plan.progress, self._plan.windows, state.progress, level.counts, level.sources)
        return self._complete(batch, state, level, step)

    def drain(self, batch: Batch, state: State) -> Outcome[State]:
        """Answer every window that holds a row, as if a punctuation at the end of the stream had come."""
        return self._complete(batch, state, PaneLevel(()), drained(self._plan.progress, state.progress, state.open))

    def _complete(self, batch: Batch, state: State, level: PaneLevel, step: Advance) -> Outcome[State]:
        timer = batch.timer
        with timer("progress"):
            panes, merged = self._add(level, step, state, batch.batch_id)
            due = panes.closed_by(step.state.punctuation)
            empty = panes.empty_by(step.state.punctuation, due)
            workers = batch.steering.workers.wlq
            known = DueWindows(len(due), wlq.distinct_row_count(due), self._plan.windows.overlap, workers)
            _, placement = self._placement.decide(self._placement.init(), known)
        with timer("wlq"):
            answers = self._answer(batch.rows.sparkSession, due, placement.value, batch.batch_id)
        with timer("sink"):
            rejected = self._rejected(level, step, state)
            ahead, fresh = self._ahead(batch, step, state)
        after = State(step.state, panes.retire(step.state.punctuation), ahead)
        measured = Measured(
            tasks=level.work,
            merge_seconds=timer.seconds["wlq"],
            interval=batch.interval,
            exchanged=batch.steering.routing is not None,
        )
        metrics = batch_metrics(self._plan, batch, after, level, step, placement, answers, measured)
        return Outcome(
            state=after,
            answers=answers,
            rejected=rejected,
            written=frozenset(pane.ref.file for pane in level.panes) | merged | {ref.file for ref in fresh},
            rejected_files=frozenset(ref.file for ref in level.rejected_rows),
            fingerprint=level.fingerprint,
            metrics=replace(metrics, empty_windows=empty),
            measured=measured,
        )

    def _lift_stage(self, batch_id: int, state: State) -> LiftStage:
        gate = replace(self._plan.gate.after(state.progress.punctuation), keep=self._keep_rejected)
        return LiftStage(self._plan.query, gate, self._store, batch_id)

    def _add(
        self, level: PaneLevel, step: Advance, state: State, batch_id: int
    ) -> tuple[OpenPanes[PartialRef], frozenset[str]]:
        """Add the batch's partials to the open panes; merge for keeping the panes that lie in many small ones.

        Returns the panes, and the names of the files of merged partials.
        """
        panes = state.open.without(step.given_up).add((pane.count.pane, pane.ref) for pane in level.panes)
        scattered = panes.scattered(step.state.punctuation)
        if not scattered or sum(ref.rows for pane in scattered for ref in panes.panes[pane]) > DRIVER_ROWS:
            return panes, frozenset()
        read = PartialReader(self._partials)
        merged = [self._plan.query.combine([read(ref) for ref in panes.panes[pane]]) for pane in scattered]
        refs = partials.write(self._partials, attempt_name(batch_id, MERGED), merged)
        return panes.replace(zip(scattered, refs, strict=True)), frozenset(ref.file for ref in refs)

    def _answer(self, spark: SparkSession, due: list[wlq.RefTask], place: Place, batch_id: int) -> Answers:
        if place.where == "driver":
            return wlq.in_driver(self._window_worker, self._store, due, self._answer_schema)
        runs = wlq.cut(due, place.runs)
        stage = wlq.RunStage(
            self._window_query, self._store, self._staged, f"{batch_id:012d}", runs, self._answer_schema
        )
        return wlq.on_workers(spark, stage)

    def _ahead(
        self, batch: Batch, step: Advance, state: State
    ) -> tuple[tuple[PartialRef, ...], tuple[PartialRef, ...]]:
        """Return the rows kept for the late sink from now on: those that are held, of this batch and of those before.

        Returns those of this batch by themselves too.
        """
        fresh: tuple[PartialRef, ...] = ()
        if not self._keep_rejected:
            return (), fresh
        if step.held:
            gate = replace(self._plan.gate, limit=step.limit, keep=True)
            fresh = rejects.write_ahead(batch.rows, AheadStage(gate, self._partials, batch.batch_id))
        still = () if step.given_up or not step.state.held.panes else state.ahead
        return (*still, *fresh), fresh

    def _rejected(self, level: PaneLevel, step: Advance, state: State) -> Answers | None:
        if not self._keep_rejected:
            return None
        future = rejects.given_up(self._plan.gate, self._partials, state.ahead, step.given_up) if step.given_up else ()
        return rejects.gather(self._schema, level, self._store, future)
