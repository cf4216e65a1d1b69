"""The pane-level query as one Arrow map stage: it reads rows, writes files of partials, and returns small reports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from skypane.control.measurements import PaneWork, TaskWork
from skypane.control.splitting import Routing
from skypane.naming import backticked
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.pane_counts import PaneCount, merged_sources, merged_times
from skypane.operators.entry.rejected import Rejection
from skypane.operators.entry.row_runs import UnitRuns
from skypane.operators.pane_query import LiftResult, PaneQuery
from skypane.operators.query import Query
from skypane.progress.pane_arrivals import SourceCount
from skypane.runtime.memory_headroom import FEWER_ROWS, Headroom
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.fingerprint import Fingerprint, fingerprint_of
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReference, attempt_name
from skypane.runtime.spark.engine.reading_order import UNIT, unmarked
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.spark_schema import from_spark
from skypane.runtime.spark.versions import partitioned
from skypane.snapshots import from_json, to_json
from skypane.types import Micros
from skypane.windows import Windows
from skypane.wording import count

REJECTED = "rejected"

_SLOTS = 64
"""Slots over which the rows of a pane are spread; shares are exact to within one slot."""
_MOST_PANES = 1024
"""Newest panes whose shares are looked up; each older pane has one owner, in turn."""


@dataclass(frozen=True, slots=True)
class PaneReport:
    """One partial that a task wrote, the counts of its rows, and the seconds spent lifting them."""

    count: PaneCount
    ref: PartialReference
    busy: float


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Report of one task; `busy` is the seconds spent on its rows, without the time spent waiting for them."""

    fingerprint: Fingerprint
    busy: float
    panes: tuple[PaneReport, ...]
    #: the counts of rejected rows; the rows are in `rejected_rows`
    rejection: Rejection
    rejected_rows: tuple[PartialReference, ...]
    sources: Mapping[str, SourceCount]
    shown: Mapping[str, Micros]
    #: the rows with a valid time in the order of reading, by unit; None: not known
    units: tuple[UnitRuns, ...] | None

    def to_json(self) -> str:
        return json.dumps(to_json(self))

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        return from_json(cls, json.loads(text))

    @property
    def work(self) -> TaskWork:
        panes = (PaneWork(pane.count.pane, pane.count.rows, pane.busy) for pane in self.panes)
        return TaskWork(self.fingerprint.rows, self.busy, tuple(panes))


@dataclass(frozen=True, slots=True)
class LiftStage:
    """The pane-level query of one task; travels to the workers."""

    query: Query
    gate: EntryRules
    store: DocumentStore
    batch_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lift the rows of one task; yield its report as one row."""
        clock = time.perf_counter
        worker = PaneQuery(self.query, self.gate, clock=clock)
        busy, seen, room = 0.0, Fingerprint(), Headroom(FEWER_ROWS)
        for rows in from_spark(batches):
            began = clock()
            batch, units = unmarked(rows)
            room.require(batch.nbytes, worker.step_bytes(batch), f"the rows of a task ({count(seen.rows)} so far)")
            worker.absorb(batch, units)
            seen += fingerprint_of(batch, self.gate.time)
            busy += clock() - began
        began = clock()
        room.require(0, worker.step_bytes(), f"the {count(seen.rows)} rows of a task")
        report = self._report(worker.close(), seen, lambda: busy + clock() - began)
        keep_loaded(LiftStage)
        yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})

    def _report(self, lifted: LiftResult, seen: Fingerprint, busy: Callable[[], float]) -> TaskReport:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        refs = []
        if lifted.partials:
            name = attempt_name(self.batch_id, task)
            refs = partials.write(self.store.child(PARTIALS), name, [part.partial for part in lifted.partials])
        rejected: list[PartialReference] = []
        if lifted.rejection.rows:
            name = attempt_name(self.batch_id, task)
            rejected = partials.write(self.store.child(REJECTED), name, lifted.rejection.rows)
        return TaskReport(
            fingerprint=seen,
            busy=busy(),
            panes=tuple(
                PaneReport(part.count, ref, part.busy) for part, ref in zip(lifted.partials, refs, strict=True)
            ),
            rejection=lifted.rejection,
            rejected_rows=tuple(rejected),
            sources=lifted.sources,
            shown=lifted.shown,
            units=lifted.units,
        )


@dataclass(frozen=True, slots=True)
class LiftReports:
    """The reports of all tasks of a batch, and their totals."""

    tasks: tuple[TaskReport, ...]

    @property
    def fingerprint(self) -> Fingerprint:
        return reduce(Fingerprint.__add__, (task.fingerprint for task in self.tasks), Fingerprint())

    @property
    def work(self) -> tuple[TaskWork, ...]:
        return tuple(task.work for task in self.tasks)

    @property
    def panes(self) -> Iterator[PaneReport]:
        return (pane for task in self.tasks for pane in task.panes)

    @property
    def counts(self) -> Iterator[PaneCount]:
        """The panes of all rows with a credible time, including late rows."""
        yield from (pane.count for pane in self.panes)
        for task in self.tasks:
            yield from (*task.rejection.late, *task.rejection.elsewhere)

    @property
    def rejection(self) -> Rejection:
        return Rejection().merge(*(task.rejection for task in self.tasks))

    @property
    def sources(self) -> dict[str, SourceCount]:
        """Counts by source; empty unless the plan names a source column."""
        return merged_sources(task.sources for task in self.tasks)

    @property
    def shown(self) -> dict[str, Micros]:
        """Newest times by the clocks of the sources whose clocks are off."""
        return merged_times(task.shown for task in self.tasks)

    @property
    def units(self) -> list[UnitRuns] | None:
        """The rows by unit, in the order of reading; None if a task does not know it."""
        known = [task.units for task in self.tasks if task.units is not None]
        return None if len(known) < len(self.tasks) else [unit for units in known for unit in units]

    @property
    def rejected_rows(self) -> list[PartialReference]:
        return [ref for task in self.tasks for ref in task.rejected_rows]


def run(
    rows: DataFrame,
    stage: LiftStage,
    transfer: ArrowTransfer,
    routing: Routing | None,
    tasks: int | None = None,
    *,
    in_driver: bool = False,
) -> LiftReports:
    """Lift a batch in one job with one Python stage, after an exchange if there is a routing.

    tasks       maximum number of tasks without an exchange; a task may then read several of the source's partitions
    in_driver   whether the driver lifts all rows, without a Python stage
    """
    if routing is not None:
        rows = routed(rows.drop(UNIT), stage.gate, routing)  # the exchange changes the order
    elif tasks is not None:
        rows = rows.coalesce(tasks)
    reports = transfer.run(rows, stage, lambda reports: _forget(stage.store, _level(reports)), in_driver=in_driver)
    return _level(reports)


def _level(reports: Iterable[str]) -> LiftReports:
    return LiftReports(tuple(map(TaskReport.from_json, reports)))


def _forget(store: DocumentStore, level: LiftReports) -> None:
    """Remove the files of tasks that will run again."""
    store.child(PARTIALS).remove({pane.ref.file for pane in level.panes})
    store.child(REJECTED).remove({ref.file for ref in level.rejected_rows})


def routed(rows: DataFrame, gate: EntryRules, routing: Routing) -> DataFrame:
    """Move each row to the task of its worker.

    Spark computes the worker natively from the row alone, so a retried task gets the same rows. A hash spreads the rows
    of a pane with several owners over them in proportion to their shares.
    """
    if routing.everywhere:
        return rows.repartition(routing.workers)
    micros = sf.unix_micros(sf.col(backticked(gate.time)).cast("timestamp"))
    # Extreme times overflow to null. The division in floating point may be off by one pane; no answer depends on it.
    pane = _pane(micros, gate.windows)
    worker = sf.coalesce(sf.pmod(pane, sf.lit(routing.workers)), sf.lit(0)).cast("int")
    if routing.shares:
        worker = sf.coalesce(_shared(rows, pane, routing), worker)
    return partitioned(rows, routing.workers, worker)


def _pane(micros: Column, windows: Windows) -> Column:
    since = sf.try_subtract(micros, sf.lit(windows.offset))
    slides = sf.floor(since / sf.lit(windows.slide))
    if not windows.head:
        return slides
    rest = sf.try_subtract(since, sf.try_multiply(slides, sf.lit(windows.slide)))
    tail = (rest >= windows.head).cast("bigint")
    return sf.try_add(sf.try_multiply(slides, sf.lit(2)), tail)


def _shared(rows: DataFrame, pane: Column, routing: Routing) -> Column:
    """Return the worker of a row whose pane has shares, null for other rows; one look-up for any number of panes."""
    last = max(routing.shares)
    first = max(min(routing.shares), last - _MOST_PANES + 1)
    slots = [worker for known in range(first, last + 1) for worker in routing.slots(known, _SLOTS)]
    table = sf.split(sf.lit(",".join(map(str, slots))), ",").cast("array<int>")  # a constant, which Spark folds once
    hashed = [backticked(field.name) for field in rows.schema.fields if _hashable(field.dataType)]
    # For a pane far from all of these the subtraction overflows to null, which has no entry in the table.
    slot = sf.pmod(sf.xxhash64(*hashed), sf.lit(_SLOTS))
    place = sf.try_add(sf.try_multiply(sf.try_subtract(pane, sf.lit(first)), sf.lit(_SLOTS)), slot)
    return sf.get(table, place.try_cast("int"))


def _hashable(kind: DataType) -> bool:
    """Return whether Spark can hash values of the type: it cannot hash maps, variants, and types that contain them."""
    return not any(word in kind.simpleString() for word in ("map<", "variant"))
