"""The pane-level query of several queries in one pass: each task reads its rows once, and lifts them for each query."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from skypane.control.measurements import PaneWork, TaskWork
from skypane.control.splitting import Routing
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.shared_pane_query import SharedLift, SharedPaneQuery, SharedResult
from skypane.runtime.memory_headroom import FEWER_ROWS, Headroom
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.fingerprint import Fingerprint, fingerprint_of
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReference, attempt_name
from skypane.runtime.spark.engine.plq import REJECTED, LiftReports, PaneReport, TaskReport, routed
from skypane.runtime.spark.engine.reading_order import UNIT, unmarked
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.spark_schema import from_spark
from skypane.snapshots import from_json, to_json
from skypane.wording import count


@dataclass(frozen=True, slots=True)
class SharedTaskReport:
    """Report of one task: of each query, by name; its seconds for all rows; and references to the rejected rows."""

    queries: Mapping[str, TaskReport]
    fingerprint: Fingerprint
    busy: float
    rejected_rows: tuple[PartialReference, ...]

    def work(self, lead: str) -> TaskWork:
        """Return the work of the task on the panes of the query `lead`, with their part of the seconds of all queries."""
        own = self.queries[lead]
        share = sum(report.busy for report in self.queries.values()) / own.busy if own.busy else 1.0
        panes = (PaneWork(pane.count.pane, pane.count.rows, pane.busy * share) for pane in own.panes)
        return TaskWork(self.fingerprint.rows, self.busy, tuple(panes))


@dataclass(frozen=True, slots=True)
class SharedReports:
    """The reports of all tasks of a batch."""

    tasks: tuple[SharedTaskReport, ...]

    @property
    def fingerprint(self) -> Fingerprint:
        return reduce(Fingerprint.__add__, (task.fingerprint for task in self.tasks), Fingerprint())

    @property
    def rejected_rows(self) -> list[PartialReference]:
        return [ref for task in self.tasks for ref in task.rejected_rows]

    def of(self, query: str) -> LiftReports:
        """Return the reports of one query."""
        return LiftReports(tuple(task.queries[query] for task in self.tasks))


@dataclass(frozen=True, slots=True)
class SharedLiftStage:
    """The pane-level query of one task for all queries; travels to the workers.

    keep   whether rejected rows are written for the late sink
    """

    lifts: Mapping[str, SharedLift]
    time: str
    keep: bool
    store: DocumentStore
    batch_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lift the rows of one task; yield its report as one row."""
        clock = time.perf_counter
        worker = SharedPaneQuery(self.lifts, keep=self.keep, clock=clock)
        busy, seen, room = 0.0, Fingerprint(), Headroom(FEWER_ROWS)
        for rows in from_spark(batches):
            began = clock()
            batch, units = unmarked(rows)
            room.require(batch.nbytes, worker.step_bytes(batch), f"the rows of a task ({count(seen.rows)} so far)")
            worker.absorb(batch, units)
            seen += fingerprint_of(batch, self.time)
            busy += clock() - began
        began = clock()
        room.require(0, worker.step_bytes(), f"the {count(seen.rows)} rows of a task")
        report = self._report(worker.close(), seen, lambda: busy + clock() - began)
        keep_loaded(SharedLiftStage)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(to_json(report))]})

    def _report(self, result: SharedResult, seen: Fingerprint, busy: Callable[[], float]) -> SharedTaskReport:
        # One file for the partials of all queries: a file costs more than its bytes.
        refs = iter(self._written(PARTIALS, [part.partial for one in result.lifted.values() for part in one.partials]))
        panes = {
            name: tuple(PaneReport(part.count, next(refs), part.busy) for part in one.partials)
            for name, one in result.lifted.items()
        }
        queries = {
            name: TaskReport(seen, result.busy[name], panes[name], one.rejection, (), one.sources, one.shown, one.units)
            for name, one in result.lifted.items()
        }
        rejected = tuple(self._written(REJECTED, result.rejected))
        return SharedTaskReport(queries, seen, busy(), rejected)

    def _written(self, folder: str, tables: Iterable[pa.Table]) -> list[PartialReference]:
        if not (tables := list(tables)):
            return []
        context = TaskContext.get()
        name = attempt_name(self.batch_id, context.partitionId() if context else 0)
        return partials.write(self.store.child(folder), name, tables)


def run(
    rows: DataFrame,
    stage: SharedLiftStage,
    gate: EntryRules,
    transfer: ArrowTransfer,
    routing: Routing | None,
    tasks: int | None,
    *,
    in_driver: bool = False,
) -> SharedReports:
    """Lift a batch for all queries in one job with one Python stage, after an exchange by the panes of `gate` if any."""
    if routing is not None:
        rows = routed(rows.drop(UNIT), gate, routing)  # the exchange changes the order
    elif tasks is not None:
        rows = rows.coalesce(tasks)
    found = transfer.run(rows, stage, lambda reports: _forget(stage.store, _reports(reports)), in_driver=in_driver)
    return _reports(found)


def _reports(texts: Iterable[str]) -> SharedReports:
    return SharedReports(tuple(from_json(SharedTaskReport, json.loads(text)) for text in texts))


def _forget(store: DocumentStore, reports: SharedReports) -> None:
    """Remove the files of tasks that will run again."""
    queries = [report for task in reports.tasks for report in task.queries.values()]
    store.child(PARTIALS).remove({pane.ref.file for report in queries for pane in report.panes})
    store.child(REJECTED).remove({ref.file for ref in reports.rejected_rows})
