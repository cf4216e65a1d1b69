"""A query that takes over from another one, while that one still answers the windows that hold rows read before.

    earlier                 [====)   the windows of the earlier query that begin before `begin`, the first window of the
                               [====)    new one that holds no row read before
    new                          [====)  the windows of the new query that begin at `begin` or later
                                   [====)

Rows are read once, and lifted for the queries whose windows hold them: those before `begin` for the earlier one, those
after its last window for the new one, those between for both. Windows of the new query wait until the earlier one has
answered its last window. Then its state is dropped, and the new query continues alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import pyarrow as pa

from skypane.naming import backticked
from skypane.operators.changes.first_windows import last_before
from skypane.operators.changes.passed_rows import with_columns
from skypane.operators.changes.recorded_query import query_of
from skypane.operators.entry.entry_rules import times_of
from skypane.operators.shared_pane_query import SharedLift
from skypane.plan import Plan
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import shared_lift
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.late_rows import schema_of
from skypane.runtime.spark.engine.partials import PartialReader
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.shared_lift import SharedLiftStage, SharedReports
from skypane.runtime.spark.engine.shared_metrics import shared_measurements, shared_metrics
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError, ConfigError, Micros
from skypane.windows import Windows

RECORD: Final = "earlier"
"""Key of the earlier query in the operator's part of a manifest."""
_EARLIER, _NEW = "earlier", "new"
"""Names of the queries in metrics."""


@dataclass(frozen=True)
class Handover:
    """The two queries, and where one takes over from the other.

    definition  the earlier query, as the checkpoint records it
    before      its plan, without a last window
    after       the plan of the new query, without a first window
    first       the first window of the new query
    schema      schema of the rows that the earlier query reads, in its order of columns
    """

    definition: Mapping[str, Any]
    before: Plan
    after: Plan
    first: int
    schema: pa.Schema

    @classmethod
    def of(cls, definition: Mapping[str, Any], first: int, plan: Plan, rows: pa.Schema) -> Self:
        """Return the handover from a recorded query to `plan`, whose first window is `first`.

        rows   schema of all columns that the job's rows have

        Raises ConfigError, with the reason, if the earlier query cannot run beside the new one.
        """
        before = _plan_of(definition, plan)
        return cls(definition, before, plan, first, _columns_of(definition, before, rows))

    @classmethod
    def restored(cls, record: Mapping[str, Any], plan: Plan, rows: pa.Schema) -> Self:
        """Return the handover that a manifest records; raise CheckpointError if it cannot continue."""
        try:
            return cls.of(record["definition"], record["first"], plan, rows)
        except (ConfigError, KeyError) as error:
            raise CheckpointError(
                f"the earlier query of this checkpoint has to answer its last windows, and cannot: {error}; restore "
                f"the job as it was until it has"
            ) from error

    @property
    def begin(self) -> Micros:
        """The start of the first window of the new query."""
        return self.after.windows.bounds(self.first)[0]

    @property
    def last(self) -> int:
        """The last window of the earlier query: the last one that begins before the first one of the new query."""
        return last_before(self.before.windows, self.begin)

    @property
    def end(self) -> Micros:
        """The end of the last window of the earlier query."""
        return self.before.windows.bounds(self.last)[1]

    @cached_property
    def earlier(self) -> Plan:
        """The plan of the earlier query, up to its last window."""
        return replace(self.before, stop=self.last + 1)

    @cached_property
    def new(self) -> Plan:
        """The plan of the new query, from its first window on."""
        return replace(self.after, first=self.first)

    @property
    def record(self) -> dict[str, Any]:
        """The recorded query and the first window of the new one, for restored(), as a JSON value."""
        return {"definition": dict(self.definition), "first": self.first}

    def rows(self, new: pa.Schema, rows: pa.Schema) -> pa.Schema:
        """Return the schema of the rows that both queries together read, if the new one reads those of schema `new`."""
        read = {*self.schema.names, *new.names}
        return pa.schema([field for field in rows if field.name in read])

    def answered(self, state: WindowState) -> bool:
        """Return whether the earlier query has answered its last window."""
        return state.progress.punctuation is not None and state.progress.punctuation >= self.end


def _plan_of(definition: Mapping[str, Any], plan: Plan) -> Plan:
    """Return the plan of a recorded query, by the policy of the new one."""
    policy, now = definition["progress"], json.loads(json.dumps(plan.definition(pa.schema([]))["progress"]))
    if policy != now:
        kinds = [described.get("policy", described) for described in (policy, now)]
        raise ConfigError(f"its policy, {kinds[0]}, is not that of the new query, {kinds[1]}")
    if plan.progress.judges_clocks:
        raise ConfigError("the policy corrects or quarantines clocks, by what one query has seen")
    for name in ("time", "source"):
        if definition[name] != (value := getattr(plan, name)):
            raise ConfigError(f"its {name}, {definition[name]!r}, is not that of the new query, {value!r}")
    if plan.amend is not None:
        raise ConfigError("the new query amends its answers")
    windows = Windows(**definition["window"])
    return Plan(query_of(definition["query"], plan.query), windows, plan.time, plan.progress, plan.source)


def _columns_of(definition: Mapping[str, Any], plan: Plan, rows: pa.Schema) -> pa.Schema:
    """Return the schema of the columns that a recorded query reads, taken from those of the job's rows."""
    recorded, order = definition["columns"], definition["column order"]
    read = plan.reads(pa.schema([(name, pa.null()) for name in order]))
    for name in read:
        kind = str(rows.field(name).type) if name in rows.names else None
        if kind != recorded[name]:
            found = "is gone" if kind is None else f"is {kind!r}"
            raise ConfigError(f"it reads the column {name!r} of type {recorded[name]!r}, which {found}")
    schema = pa.schema([rows.field(name) for name in read])
    plan.validate(schema)
    return schema


@dataclass(frozen=True, slots=True)
class HandoverState:
    """The states of both queries."""

    handover: Handover
    earlier: WindowState
    new: WindowState

    @property
    def progress(self) -> ProgressState:
        """The progress of the new query; snapshot() has that of the earlier one."""
        return self.new.progress

    @property
    def drained(self) -> bool:
        return self.earlier.drained and self.new.drained

    @property
    def files(self) -> frozenset[str]:
        return self.earlier.files | self.new.files

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the new query, and beside it all of the earlier one, as a JSON value."""
        policy = self.handover.earlier.progress
        earlier = {"progress": policy.snapshot(self.earlier.progress), "state": self.earlier.snapshot()}
        return {**self.new.snapshot(), RECORD: {**self.handover.record, **earlier}}


State = HandoverState | WindowState
"""The state of both queries, or that of the new one alone."""


class HandoverProgram:
    """Runs both queries until the earlier one has answered its last window, then the new one alone.

    plan           plan of the new query, alone
    schema         schema of the rows that it reads
    rows           schema of all columns that the job's rows have
    store          folder of the partials
    keep_rejected  whether there is a late sink
    staged         folder to which workers write answers
    """

    def __init__(
        self,
        handover: Handover,
        plan: Plan,
        schema: pa.Schema,
        rows: pa.Schema,
        store: DocumentStore,
        keep_rejected: bool,
        staged: DocumentStore,
    ) -> None:
        self._handover = handover
        self._plan = plan
        self._schema = schema
        self._store = store
        self._keep_rejected = keep_rejected
        #: the columns that the rows of a batch have to have
        self.columns = tuple(handover.rows(schema, rows).names)
        self._transfer = ArrowTransfer(handover.rows(schema, rows))

        def program(of: Plan, its: pa.Schema) -> WindowedProgram:
            intake = Ingest(of, its, store, keep_rejected, ArrowTransfer(its))
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
            return _any(self._alone.run(_with(batch, self._schema), state))
        reports = self._lift(batch, state)
        earlier = self._earlier.after_lift(_with(batch, self._handover.schema), state.earlier, reports.of(_EARLIER))
        new = self._new.after_lift(_with(batch, self._schema), state.new, reports.of(_NEW), wait=True)
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
        stage = SharedLiftStage(lifts, self._plan.time, self._keep_rejected, self._store, batch.batch_id)
        with batch.timer("plq"):
            return shared_lift.run(
                batch.rows,
                stage,
                lifts[self._lead].gate,
                self._transfer,
                batch.steering.routing,
                batch.steering.tasks,
            )

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
                shared_metrics(batch, metrics, reports.fingerprint.rows, measured),
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
        if not self._keep_rejected:
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
        return schema_of(self._schema)


def _batch_rows(schema: pa.Schema, tables: list[pa.Table]) -> BatchRows:
    tables = [with_columns(table, schema).cast(schema) for table in tables]
    return BatchRows(schema, row_count=sum(table.num_rows for table in tables), tables=tuple(tables))


def _with(batch: MicroBatch, schema: pa.Schema) -> MicroBatch:
    """Return a batch with the columns of `schema` only, in its order."""
    if batch.rows.columns == schema.names:
        return batch
    return replace(batch, rows=batch.rows.select(*(backticked(name) for name in schema.names)))


def _any(outcome: BatchOutcome[WindowState]) -> BatchOutcome[State]:
    """Return an outcome as one whose state may be of both queries."""
    return replace(outcome)  # type: ignore[return-value]
