"""The program of a query that takes over from another one: both run, then the new one alone (handover.py).

lift      rows become partials of both queries, in one job                              shared_lift.py
answer    the earlier query answers; windows of the new one wait until it is done       window_program.py
merge     the outcomes become one, which the shell commits as a whole
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from skypane.naming import backticked
from skypane.operators.changes.passed_rows import with_columns
from skypane.operators.entry.entry_rules import times_of
from skypane.operators.entry.raw_text import sent
from skypane.operators.shared_pane_query import SharedLift
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import shared_lift
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.handover import RECORD, Handover, HandoverState
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.late_rows import schema_of
from skypane.runtime.spark.engine.partials import PartialReader
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.reading_order import UNIT
from skypane.runtime.spark.engine.shared_lift import SharedLiftStage, SharedReports
from skypane.runtime.spark.engine.shared_metrics import shared_measurements, shared_metrics
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError

_EARLIER, _NEW = "earlier", "new"
"""Names of the queries in metrics."""

State = HandoverState | WindowState
"""The state of both queries, or that of the new one alone."""


class HandoverProgram:
    """Runs both queries until the earlier one has answered its last window, then the new one alone.

    plan           plan of the new query, alone
    schema         schema of the rows that it reads
    rows           schema of all columns that the job's rows have
    store          folder of the partials
    added          columns that rejected rows get, for the late sink; None without one
    staged         folder to which workers write answers
    """

    def __init__(
        self,
        handover: Handover,
        plan: Plan,
        schema: pa.Schema,
        rows: pa.Schema,
        store: DocumentStore,
        added: pa.Schema | None,
        staged: DocumentStore,
    ) -> None:
        self._handover = handover
        self._plan = plan
        self._schema = schema
        self._store = store
        self._added = added
        #: the columns that only late rows keep
        self._sent = [] if added is None else [rows.field(name) for name in sent(rows)]
        both = pa.schema([*handover.rows(schema, rows), *self._sent])
        #: the columns that the rows of a batch have to have
        self.columns = tuple(both.names)
        self._transfer = ArrowTransfer(both)

        def program(of: Plan, its: pa.Schema) -> WindowedProgram:
            intake = Ingest(of, its, store, added, ArrowTransfer(pa.schema([*its, *self._sent])))
            return WindowedProgram(of, intake, of.output_schema(its), staged)

        self._earlier = program(handover.earlier, handover.schema)
        self._new = program(handover.new, schema)
        self._alone = program(plan, schema)

    def init(self) -> State:
        return self._alone.init()

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> State:
        try:
            saved = operator[RECORD]
            parts = saved["progress"], saved["state"]
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the earlier query in the checkpoint cannot be read: {error!r}") from error
        return HandoverState(self._handover, self._earlier.restore(*parts), self._new.restore(progress, operator))

    def run(self, batch: MicroBatch, state: State) -> BatchOutcome[State]:
        """Process a batch: one lift pass; the earlier query answers, windows of the new one wait for it."""
        if isinstance(state, WindowState):
            return _any(self._alone.run(self._with(batch, self._schema), state))
        reports = self._lift(batch, state)
        one, other = (replace(batch, query=name) for name in (_EARLIER, _NEW))
        earlier = self._earlier.after_lift(self._with(one, self._handover.schema), state.earlier, reports.of(_EARLIER))
        new = self._new.after_lift(self._with(other, self._schema), state.new, reports.of(_NEW), wait=True)
        return self._merged(batch, earlier, new, reports)

    def drain(self, batch: MicroBatch, state: State) -> BatchOutcome[State]:
        """Answer all windows of the earlier query as if the stream had ended, or those of the new one if there are none.

        Both have answers of their own columns, so a drain of both takes two batches.
        """
        if isinstance(state, WindowState):
            return _any(self._alone.drain(batch, state))
        if self._handover.answered(state.earlier):
            new = self._new.drain(batch, state.new)
            return replace(_any(new), state=self._after(state.earlier, new.state))
        outcome = self._earlier.drain(batch, state.earlier)
        closed = self._handover.earlier.progress.close(outcome.state.progress, self._handover.end)
        after = self._after(replace(outcome.state, progress=closed), state.new)
        rejected = None if outcome.rejected is None else _batch_rows(self._late_schema, self._before(outcome.rejected))
        return replace(_any(outcome), state=after, rejected=rejected)

    def readmit(self, batch: MicroBatch, state: WindowState) -> BatchOutcome[WindowState]:
        """Process rows that were rejected before; the new query has to be alone."""
        return self._alone.readmit(batch, state)

    def _lift(self, batch: MicroBatch, state: HandoverState) -> SharedReports:
        lifts = {
            _EARLIER: self._lifted(self._handover.earlier, state.earlier, self._handover.schema),
            _NEW: self._lifted(self._handover.new, state.new, self._schema),
        }
        stage = SharedLiftStage(lifts, self._plan.time, self._added is not None, self._store, batch.batch_id)
        with batch.timer("plq"):
            return shared_lift.run(
                batch.rows,
                stage,
                lifts[self._lead].gate,
                self._transfer,
                batch.steering.routing,
                batch.steering.tasks,
                in_driver=batch.steering.in_driver,
            )

    def _with(self, batch: MicroBatch, schema: pa.Schema) -> MicroBatch:
        """Return a batch with the columns of `schema`, in its order, and those that only late rows keep."""
        names = [
            *schema.names,
            *(field.name for field in self._sent),
            *(name for name in batch.rows.columns if name == UNIT),
        ]
        if batch.rows.columns == names:
            return batch
        return replace(batch, rows=batch.rows.select(*map(backticked, names)))

    @staticmethod
    def _lifted(plan: Plan, state: WindowState, schema: pa.Schema) -> SharedLift:
        return SharedLift(plan.query, state.gate(plan), tuple(schema.names))

    @property
    def _lead(self) -> str:
        """The query with the shorter panes, by which rows are exchanged between tasks."""
        earlier, new = self._handover.earlier.windows.longest_pane, self._plan.windows.longest_pane
        return _EARLIER if earlier < new else _NEW

    def _merged(
        self,
        batch: MicroBatch,
        earlier: BatchOutcome[WindowState],
        new: BatchOutcome[WindowState],
        reports: SharedReports,
    ) -> BatchOutcome[State]:
        with batch.timer("sink"):
            rejected = self._rejected(earlier, new, reports)
        outcomes = {_EARLIER: earlier, _NEW: new}
        measured = shared_measurements(batch, [one.measured for one in outcomes.values()], reports, self._lead)
        metrics = {name: one.metrics for name, one in outcomes.items()}
        return BatchOutcome(
            state=self._after(earlier.state, new.state),
            answers=earlier.answers,
            rejected=rejected,
            written=earlier.written | new.written,
            rejected_files=frozenset(ref.file for ref in reports.rejected_rows),
            fingerprint=reports.fingerprint,
            metrics=replace(
                shared_metrics(batch, metrics, self._lead, reports.fingerprint.rows, measured),
                latest_window=earlier.metrics.latest_window,
            ),
            measured=measured,
        )

    def _after(self, earlier: WindowState, new: WindowState) -> State:
        """Return the state of both queries, or that of the new one if the earlier one has answered its last window.

        The policy of the new query may hold rows that are those of the earlier one; then it is not alone yet.
        """
        begin = self._handover.begin
        if not self._handover.answered(earlier) or any(pane.start < begin for pane in new.progress.held.panes):
            return HandoverState(self._handover, earlier, new)
        # From now on rows before the first window are late, as after any answer.
        return replace(new, progress=self._plan.progress.close(new.progress, begin))

    def _rejected(
        self, earlier: BatchOutcome[WindowState], new: BatchOutcome[WindowState], reports: SharedReports
    ) -> BatchRows | None:
        """Return the rows that one of both rejects, once for each reason, with the columns of the new query."""
        if self._added is None:
            return None
        tables = [*map(PartialReader(self._store.child(REJECTED)), reports.rejected_rows)]
        tables += [] if earlier.rejected is None else self._before(earlier.rejected)
        tables += [] if new.rejected is None else new.rejected.tables
        return _batch_rows(self._late_schema, tables)

    def _before(self, rejected: BatchRows) -> list[pa.Table]:
        """Return the held rows that the earlier query abandons, without those that the new one holds, too."""
        time, begin = self._plan.time, self._handover.begin
        return [table.filter(pa.array(times_of(table.column(time)) < begin)) for table in rejected.tables]

    @cached_property
    def _late_schema(self) -> pa.Schema:
        return schema_of(self._schema, self._added or pa.schema([]))


def _batch_rows(schema: pa.Schema, tables: list[pa.Table]) -> BatchRows:
    tables = [with_columns(table, schema).cast(schema) for table in tables]
    return BatchRows(schema, row_count=sum(table.num_rows for table in tables), tables=tuple(tables))


def _any(outcome: BatchOutcome[WindowState]) -> BatchOutcome[State]:
    """Return an outcome as one whose state may be of both queries."""
    return replace(outcome)  # type: ignore[return-value]
