"""The program of several windowed queries over one stream: one lift pass, then each query's own windowed program.

lift      rows become partials of the open panes of each query, in one job    shared_lift.py
answer    each query moves its punctuation and answers its windows            window_program.py
merge     the outcomes become one, which the shell commits as a whole

State, metrics and answers are by the name of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from skypane.operators.entry.shared_rejects import QUERIES, named
from skypane.operators.shared_pane_query import SharedLift
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import late_rows, shared_lift
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.partials import PartialReader
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.shared_lift import SharedLiftStage, SharedReports
from skypane.runtime.spark.engine.shared_metrics import shared_measurements, shared_metrics
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.shared_plan import SharedPlan
from skypane.types import CheckpointError, Micros


def rejected_schema(schema: pa.Schema, added: pa.Schema) -> pa.Schema:
    """Return the schema of rejected rows: as of one query, and the queries that reject the row for its reason."""
    return late_rows.schema_of(schema, added).append(pa.field(QUERIES, pa.string()))


@dataclass(frozen=True, slots=True)
class SharedState:
    """The state of each query, by name."""

    plan: SharedPlan
    queries: Mapping[str, WindowState]

    @classmethod
    def restored(cls, plan: SharedPlan, operator: Mapping[str, Any]) -> Self:
        """Return the state from its snapshot; raise CheckpointError if it cannot be read."""
        try:
            saved = {name: (operator["queries"][name]["progress"], operator["queries"][name]) for name in plan.plans}
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the queries in the checkpoint cannot be read: {error!r}") from error
        return cls(plan, {name: WindowState.restored(plan.plans[name], *parts) for name, parts in saved.items()})

    @property
    def progress(self) -> ProgressState:
        """The progress of the query with the shortest panes; snapshot() has that of each query."""
        return self.queries[self.plan.lead].progress

    @property
    def drained(self) -> bool:
        """Whether no query has a window left to answer."""
        return all(state.drained for state in self.queries.values())

    @property
    def due(self) -> Micros | None:
        """The newest event time with which the first query has an answer due; None if it is not known of one of them."""
        due = [state.due for state in self.queries.values()]
        known = [time for time in due if time is not None]
        return min(known) if len(known) == len(due) else None

    @property
    def files(self) -> frozenset[str]:
        """The files of the open panes' partials and of the held rows; a file may have partials of several queries."""
        return frozenset().union(*(state.files for state in self.queries.values()))

    def snapshot(self) -> dict[str, Any]:
        """Return the state and the progress of each query as a JSON value."""
        policy = self.plan.progress
        return {
            "queries": {
                name: {"progress": policy.snapshot(state.progress), **state.snapshot()}
                for name, state in self.queries.items()
            }
        }


class SharedProgram:
    """Lifts rows for all queries in one pass, and lets each answer its windows.

    schema    schema of the rows
    arriving  the same with the columns that only late rows keep
    store     folder of the partials
    added     columns that rejected rows get, for the late sink; None without one
    staged    returns the folder to which workers write the answers of a query
    """

    def __init__(
        self,
        plan: SharedPlan,
        schema: pa.Schema,
        arriving: pa.Schema,
        store: DocumentStore,
        added: pa.Schema | None,
        staged: Callable[[str], DocumentStore],
    ) -> None:
        self._plan = plan
        self._schema = schema
        self._store = store
        self._added = added
        self._transfer = ArrowTransfer(arriving)
        answers = plan.answer_schemas(schema)
        self._programs = {
            name: WindowedProgram(one, Ingest(one, schema, store, added, self._transfer), answers[name], staged(name))
            for name, one in plan.plans.items()
        }

    def init(self) -> SharedState:
        return SharedState(self._plan, {name: program.init() for name, program in self._programs.items()})

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> SharedState:
        del progress  # each query's own is in `operator`
        return SharedState.restored(self._plan, operator)

    def run(self, batch: MicroBatch, state: SharedState) -> BatchOutcome[SharedState]:
        """Process a batch: one lift pass, then each query in turn."""
        reports = self._lift(batch, state)
        outcomes = {
            name: program.after_lift(replace(batch, query=name), state.queries[name], reports.of(name))
            for name, program in self._programs.items()
        }
        return self._merged(batch, outcomes, reports)

    def drain(self, batch: MicroBatch, state: SharedState) -> BatchOutcome[SharedState]:
        """Answer every window of every query, as if a punctuation had ended the stream."""
        outcomes = {name: program.drain(batch, state.queries[name]) for name, program in self._programs.items()}
        return self._merged(batch, outcomes, SharedReports(()))

    def _lift(self, batch: MicroBatch, state: SharedState) -> SharedReports:
        lifts = {
            name: SharedLift(
                plan.query,
                state.queries[name].gate(plan),
                plan.reads(self._schema),
            )
            for name, plan in self._plan.plans.items()
        }
        stage = SharedLiftStage(lifts, self._plan.time, self._added is not None, self._store, batch.batch_id)
        with batch.timer("plq"):
            return shared_lift.run(
                batch.rows,
                stage,
                lifts[self._plan.lead].gate,
                self._transfer,
                batch.steering.routing,
                batch.steering.tasks,
                in_driver=batch.steering.in_driver,
            )

    def _merged(
        self, batch: MicroBatch, outcomes: Mapping[str, BatchOutcome[WindowState]], reports: SharedReports
    ) -> BatchOutcome[SharedState]:
        with batch.timer("sink"):
            rejected = self._rejected(outcomes, reports)
        each = [outcome.measured for outcome in outcomes.values()]
        measured = shared_measurements(batch, each, reports, self._plan.lead)
        return BatchOutcome(
            state=SharedState(self._plan, {name: outcome.state for name, outcome in outcomes.items()}),
            answers=None,
            rejected=rejected,
            written=frozenset().union(*(outcome.written for outcome in outcomes.values())),
            rejected_files=frozenset(ref.file for ref in reports.rejected_rows),
            fingerprint=reports.fingerprint,
            metrics=shared_metrics(
                batch,
                {name: one.metrics for name, one in outcomes.items()},
                self._plan.lead,
                reports.fingerprint.rows,
                measured,
            ),
            measured=measured,
            by_query={name: outcome.by_role["output"] for name, outcome in outcomes.items()},
        )

    def _rejected(self, outcomes: Mapping[str, BatchOutcome[WindowState]], reports: SharedReports) -> BatchRows | None:
        """Return the rows that the batch rejects: those that tasks wrote, and the held rows that a query abandons."""
        if self._added is None:
            return None
        schema = rejected_schema(self._schema, self._added)
        tables = [*map(PartialReader(self._store.child(REJECTED)), reports.rejected_rows)]
        tables += [
            named(table, name)
            for name, outcome in outcomes.items()
            if outcome.rejected is not None
            for table in outcome.rejected.tables
        ]
        tables = [table.cast(schema) for table in tables]
        return BatchRows(schema, row_count=sum(table.num_rows for table in tables), tables=tuple(tables))
