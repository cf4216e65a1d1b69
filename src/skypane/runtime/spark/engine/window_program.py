"""The program of a windowed query: the processing of one micro-batch (design, "The way of one micro-batch").

lift      rows become partials of open panes, and the punctuation moves             ingest.py
answer    windows that it completes are answered in the driver or in one more job   wlq.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from skypane.control.measurements import BatchMeasurements
from skypane.control.placement import DueWindows, PlacementChoice, place_windows
from skypane.control.window_division import Division, WindowDivision, WindowsToDivide
from skypane.operators.advance import ProgressStep, drained
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.amendments import Amendment, PaneSteps, amendment
from skypane.operators.changes.window_phases import Phase, PhasedWindows
from skypane.operators.early_answers import EarlyAnswers, EarlyStep, early_step
from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.query import DivisibleQuery, GrowingQuery, Query, is_of_package
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.memory_headroom import SHORTER_WINDOW, for_windows
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import having_stage, wlq
from skypane.runtime.spark.engine.batch_metrics import batch_metrics, plain
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.kept_panes import compacted, size_of
from skypane.runtime.spark.engine.partials import PartialReference
from skypane.runtime.spark.engine.plq import LiftReports
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.machine.executors import workers_are_threads
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import Micros


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
        self._phases: tuple[Phase, ...] = ()
        query = plan.query
        self._divisible = isinstance(query, DivisibleQuery) and query.divisible(intake.schema)
        # The number of groups is not known where partials hold several rows of a group.
        self._row_per_key = not (isinstance(query, GrowingQuery) and query.growth > 0)
        self._compared_once = self._window_query.compares_once(intake.schema)
        self._other_code = calls_other_code(query, intake.schema)
        answered_once = plan.amend is None and plan.early is None
        self._keeps_merges = (
            not self._compared_once and answered_once and self._window_query.keeps_merges(intake.schema)
        )
        #: the newest pane of the windows that have been answered, wherever that was
        self._answered_to: int | None = None

    def init(self) -> WindowState:
        return WindowState.initial(self._plan)

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> WindowState:
        return WindowState.restored(self._plan, progress, operator)

    def run(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Process a batch."""
        return self._complete(batch, state, *self._intake.lift(batch, state))

    def after_lift(
        self, batch: MicroBatch, state: WindowState, level: LiftReports, *, wait: bool = False
    ) -> BatchOutcome[WindowState]:
        """Process a batch whose rows are lifted already, together with those of other queries.

        wait   whether complete windows wait for a later batch
        """
        return self._complete(batch, state, level, self._intake.advance(batch, state, level), wait=wait)

    def drain(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Answer every window with a row that is not quarantined, as if a punctuation had ended the stream."""
        return self._complete(batch, state, LiftReports(()), drained(self._plan.progress, state.progress, state.open))

    def readmit(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Process rows that were rejected before."""
        return self._complete(batch, state, *self._intake.readmit(batch, state))

    def _complete(
        self,
        batch: MicroBatch,
        state: WindowState,
        level: LiftReports,
        step: ProgressStep,
        *,
        wait: bool = False,
    ) -> BatchOutcome[WindowState]:
        timer, step = batch.timer, self._intake.of_own_rows(step, state)
        answered_to = None if wait else step.state.punctuation
        with timer("progress"):
            panes, merged = self._intake.add(level, step, state, batch.batch_id, step.state.punctuation)
            due = panes.closed_by(answered_to)
            empty = panes.empty_by(answered_to, due)
            still = panes.retire(answered_to)
            steps = PaneSteps(state.open, panes, still)
            entered = [pane.count for pane in level.panes]
            begun = self._early(state, steps, entered, due, step.state)
            due, early = (due, []) if begun is None else (begun.due, begun.tasks)
            amended = self._amendment(state, steps, entered, due, step.state.punctuation)
            again = [] if amended is None else amended.tasks
            after = self._intake.after(level, step, state, [*again, *due], still)
            after = replace(after, early=None if begun is None else begun.early)
            copied: frozenset[str] = frozenset()
            if amended is not None:
                others = replace(after, closed=None).files
                closed, copied = compacted(self._intake.partials, amended.closed, others, batch.batch_id)
                after = replace(after, closed=closed)
            workers = batch.steering.workers.wlq
            self._enter(state.phases)
            ranked = any(phase.choice.top is not None for phase in state.phases)
            tasks = [*again, *due, *early]
            divisible = self._divisible and not ranked
            local = bool(tasks) and workers_are_threads(lambda name: batch.rows.sparkSession.conf.get(name, None))
            keys = (wlq.largest_partial(tasks) if self._row_per_key else 1) if divisible else 0
            windows = DueWindows(
                windows=len(tasks),
                row_count=wlq.distinct_row_count(tasks),
                overlap=self._plan.windows.overlap,
                workers=workers,
                keys=keys,
                compared_once=self._compared_once,
                threads=local and (self._compared_once or (divisible and not self._other_code)),
                hot=batch.steering.windows.hot,
            )
            if local and not state.phases and keys < batch.steering.costs.value.many_keys:
                windows = self._with_merges(windows, tasks)
            placement = place_windows(windows, batch.steering.costs.value)
        with timer("wlq"):
            late = {count.pane for count in entered} & _panes(again)
            if late & (_panes(due) | still.panes.keys()):
                self._window_worker = self._window_worker.anew()  # it may have merged panes that have changed
            windowed = (again, due, early)
            division = self._division(batch, tasks, windows, placement.value)
            answers, work = self._answer(batch, windowed, placement.value, division)
        with timer("sink"):
            answers = self._to_deliver(batch, tasks, answers)
            rejected = self._intake.rejected(level, step, state)
            ahead, fresh = self._intake.ahead(batch, step, state)
        after = replace(after, ahead=ahead)
        measured = BatchMeasurements(
            tasks=level.work,
            merge_seconds=timer.seconds["wlq"],
            interval=batch.interval,
            exchanged=batch.steering.routing is not None,
            runs=work.runs,
            pieces=work.pieces,
            lift_seconds=timer.seconds.get("plq", 0.0),
            due=windows,
            where=placement.value.where,
            lifted=batch.steering.lift.value,
        )
        first = answers.windows[len(again) : len(answers.windows) - len(early)]
        answered = replace(answers, windows=first, row_count=sum(rows for _, rows in first))
        metrics = batch_metrics(self._plan, batch, after, level, step, placement, answered, measured)
        return BatchOutcome(
            state=after,
            answers=answers,
            rejected=rejected,
            written=frozenset(pane.ref.file for pane in level.panes) | merged | copied | {ref.file for ref in fresh},
            rejected_files=frozenset(ref.file for ref in level.rejected_rows),
            fingerprint=level.fingerprint,
            metrics=replace(
                metrics,
                wlq_workers=metrics.wlq_workers if division is None else len(division.value.tasks),
                decisions=(*metrics.decisions, *plain(division)),
                empty_windows=empty,
                early_windows=len(early),
                amended=None if amended is None else asdict(amended.counts),
            ),
            measured=measured,
        )

    def _with_merges(self, windows: DueWindows, tasks: list[wlq.RefTask]) -> DueWindows:
        """Return `windows` with what the driver has to merge for them, where it keeps merges from batch to batch.

        On a cluster it would need the memory for all keys, and so it would here if they are very many.
        """
        if not self._keeps_merges:
            return windows
        fresh, unmerged = (
            wlq.distinct_row_count(tasks, after) for after in (self._answered_to, self._window_worker.newest)
        )
        self._answered_to = max(pane for pane, _ in tasks[-1].panes)
        return replace(windows, fresh=fresh, unmerged=unmerged)

    def _enter(self, phases: tuple[Phase, ...]) -> None:
        """Answer the windows of these phases as they are, and all others by the plan's query."""
        if phases == self._phases:
            return
        query, self._phases = self._plan.window_query(self._intake.schema), phases
        self._window_query = PhasedWindows.of(query, phases) if phases else query
        self._window_worker = self._window_query.worker(for_windows(SHORTER_WINDOW))

    def _early(
        self,
        state: WindowState,
        panes: PaneSteps[PartialReference],
        entered: list[PaneCount],
        due: list[wlq.RefTask],
        progress: ProgressState,
    ) -> EarlyStep[PartialReference] | None:
        """Return the open windows that a batch answers, and the versions of `due`; None without early answers."""
        rule = self._plan.early_rule
        if rule is None:
            return None
        return early_step(rule, state.early or EarlyAnswers(), panes, entered, due, progress)

    def _amendment(
        self,
        state: WindowState,
        panes: PaneSteps[PartialReference],
        entered: list[PaneCount],
        due: list[wlq.RefTask],
        punctuation: Micros | None,
    ) -> Amendment[PartialReference] | None:
        """Return what the late rows of a batch amend; None if windows are answered once."""
        rule = self._plan.amend
        if rule is None or state.closed is None:
            return None
        return amendment(rule, state.closed.after_early(due), panes, entered, len(due), punctuation, size_of)

    def _to_deliver(self, batch: MicroBatch, tasks: list[wlq.RefTask], answers: BatchRows) -> BatchRows:
        """Return the answers for the sink: those that meet a condition that Spark evaluates, and a row for each empty version."""
        having, windows, prefix = self._plan.having, self._plan.windows, _prefix(batch)
        if having is not None:
            answers = having_stage.kept(batch.rows.sparkSession, having, windows, answers, prefix)
        return wlq.with_empty_versions(answers, self._window_query, tasks, prefix)

    def _division(
        self, batch: MicroBatch, tasks: list[wlq.RefTask], due: DueWindows, place: PlacementChoice
    ) -> Decision[Division] | None:
        """Return how windows are divided among tasks; None if the driver answers them, or if there are none."""
        if place.where == "driver" or not tasks:
            return None
        steering = batch.steering
        known = WindowsToDivide(wlq.sizes_of(tasks), due, place, steering.costs.value)
        return WindowDivision().decide(steering.windows, known)[1]

    def _answer(
        self,
        batch: MicroBatch,
        windowed: tuple[list[wlq.RefTask], list[wlq.RefTask], list[wlq.RefTask]],
        place: PlacementChoice,
        division: Decision[Division] | None,
    ) -> tuple[BatchRows, wlq.DividedWork]:
        """Return the answers, and the work of each task.

        windowed   the windows to answer again, those to answer at their end, and those to answer before
        """
        again, due, early = windowed
        if division is None:
            return wlq.in_driver(self._window_worker, self._intake.store, due, self._answer_schema, again, early)
        stage = wlq.WindowStage(
            self._window_query,
            self._intake.store,
            self._staged,
            _prefix(batch),
            (*again, *due, *early),
            self._answer_schema,
            division.value,
        )
        return wlq.in_threads(stage) if place.where == "threads" else wlq.on_workers(batch.rows.sparkSession, stage)


def _prefix(batch: MicroBatch) -> str:
    """Return the start of the names of a batch's files of answers."""
    return f"{batch.batch_id:012d}"


def calls_other_code(query: Query, schema: pa.Schema) -> bool:
    """Return whether a query over rows of `schema` is, or calls, code of others, which threads may not share."""
    if isinstance(query, Aggregate):
        return query.calls_other_code(schema)
    return not is_of_package(query)


def _panes(tasks: list[wlq.RefTask]) -> set[int]:
    return {pane for task in tasks for pane, _ in task.panes}
