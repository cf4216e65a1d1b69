"""The pane-level query as one Arrow map stage: rows in, files of partials out, small reports to the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from skypane.control.measured import PaneWork, TaskWork
from skypane.control.splitting import Routing
from skypane.naming import backticked
from skypane.operators.entry.counts import PaneCount, merged_sources
from skypane.operators.entry.gate import Gate
from skypane.operators.entry.rejection import Rejection
from skypane.operators.pane_query import LiftResult, PaneQuery
from skypane.operators.query import Query
from skypane.progress.arrivals import SourceCount
from skypane.runtime.headroom import FEWER_ROWS, Headroom
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.crossing import Crossing
from skypane.runtime.spark.engine.fingerprint import Fingerprint, fingerprint_of
from skypane.runtime.spark.engine.partials import PARTIALS, PartialRef, attempt_name
from skypane.runtime.spark.machine.collector import keep_loaded
from skypane.runtime.spark.schema import from_spark
from skypane.runtime.spark.store import Store
from skypane.runtime.spark.versions import partitioned
from skypane.windows import Windows
from skypane.wording import count

REJECTED = "rejected"

_SLOTS = 64
"""Places among which the rows of a pane are spread; a share is met to within one of them."""
_MOST_PANES = 1024
"""Panes, the newest first, whose shares are looked up; older ones have one owner each, by turn."""


@dataclass(frozen=True, slots=True)
class PaneReport:
    """One partial that a task wrote, the rows it stands for, and the seconds that lifting them took."""

    count: PaneCount
    ref: PartialRef
    busy: float


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task did; `busy` is seconds spent on its rows, waiting for them left out."""

    fingerprint: Fingerprint
    busy: float
    panes: tuple[PaneReport, ...]
    #: without the rows, which are in `rejected_rows`
    rejection: Rejection
    rejected_rows: tuple[PartialRef, ...]
    sources: Mapping[str, SourceCount]

    def to_json(self) -> str:
        return json.dumps({
            "fingerprint": asdict(self.fingerprint),
            "busy": self.busy,
            "panes": [asdict(pane) for pane in self.panes],
            "rejection": self.rejection.to_json(),
            "rejected_rows": [asdict(ref) for ref in self.rejected_rows],
            "sources": dict(self.sources),
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        value = json.loads(text)
        panes = (
            PaneReport(PaneCount(**pane["count"]), PartialRef(**pane["ref"]), pane["busy"]) for pane in value["panes"]
        )
        return cls(
            **value
            | {
                "fingerprint": Fingerprint(**value["fingerprint"]),
                "panes": tuple(panes),
                "rejection": Rejection.from_json(value["rejection"]),
                "rejected_rows": tuple(PartialRef(**ref) for ref in value["rejected_rows"]),
                "sources": {name: SourceCount(*count) for name, count in value["sources"].items()},
            }
        )

    @property
    def work(self) -> TaskWork:
        panes = (PaneWork(pane.count.pane, pane.count.rows, pane.busy) for pane in self.panes)
        return TaskWork(self.fingerprint.rows, self.busy, tuple(panes))


@dataclass(frozen=True, slots=True)
class LiftStage:
    """What a task has to know; travels to the workers."""

    query: Query
    gate: Gate
    store: Store
    batch_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lift the rows of one task; yield its report as one row."""
        clock = time.perf_counter
        worker = PaneQuery(self.query, self.gate, clock=clock)
        busy, seen, room = 0.0, Fingerprint(), Headroom(FEWER_ROWS)
        for batch in from_spark(batches):
            began = clock()
            room.require(batch.nbytes, worker.step_bytes(batch), f"the rows of a task ({count(seen.rows)} so far)")
            worker.absorb(batch)
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
        rejected: list[PartialRef] = []
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
        )


@dataclass(frozen=True, slots=True)
class PaneLevel:
    """The reports of all tasks of a batch, and what they say together."""

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
        """The panes of every row with a time worth believing, late ones with them."""
        yield from (pane.count for pane in self.panes)
        yield from (count for task in self.tasks for count in task.rejection.late)

    @property
    def rejection(self) -> Rejection:
        return Rejection().merge(*(task.rejection for task in self.tasks))

    @property
    def sources(self) -> dict[str, SourceCount]:
        """What each source sent, where a source column is named."""
        return merged_sources(task.sources for task in self.tasks)

    @property
    def rejected_rows(self) -> list[PartialRef]:
        return [ref for task in self.tasks for ref in task.rejected_rows]


def run(
    rows: DataFrame, stage: LiftStage, crossing: Crossing, routing: Routing | None, tasks: int | None = None
) -> PaneLevel:
    """Lift a batch: one job, one Python hop, and an exchange before it only where a routing is given.

    tasks   at most so many, where rows stay where they are read: a task then reads several of the source's partitions
    """
    if routing is not None:
        rows = routed(rows, stage.gate, routing)
    elif tasks is not None:
        rows = rows.coalesce(tasks)
    return _level(crossing.run(rows, stage, lambda reports: _forget(stage.store, _level(reports))))


def _level(reports: Iterable[str]) -> PaneLevel:
    return PaneLevel(tuple(map(TaskReport.from_json, reports)))


def _forget(store: Store, level: PaneLevel) -> None:
    """Remove the files of tasks that run again."""
    store.child(PARTIALS).remove({pane.ref.file for pane in level.panes})
    store.child(REJECTED).remove({ref.file for ref in level.rejected_rows})


def routed(rows: DataFrame, gate: Gate, routing: Routing) -> DataFrame:
    """Move each row to the task of its worker: natively, and by the row alone, so that a task tried again gets the same.

    Rows of a pane with several owners are spread over them by a hash, in the proportions of the shares.
    """
    if routing.everywhere:
        return rows.repartition(routing.workers)
    micros = sf.unix_micros(sf.col(backticked(gate.time)).cast("timestamp"))
    # Absurd times overflow, to null. Division is in floating point: off by a pane at worst, and no answer depends on it.
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
    """Return the worker of a row whose pane has shares, null for others: one look-up, however many panes there are."""
    last = max(routing.shares)
    first = max(min(routing.shares), last - _MOST_PANES + 1)
    slots = [worker for known in range(first, last + 1) for worker in routing.slots(known, _SLOTS)]
    table = sf.split(sf.lit(",".join(map(str, slots))), ",").cast("array<int>")  # a constant: folded by Spark, once
    hashed = [backticked(field.name) for field in rows.schema.fields if _hashable(field.dataType)]
    # A pane that is far from all of these overflows, to null, which is in no table.
    slot = sf.pmod(sf.xxhash64(*hashed), sf.lit(_SLOTS))
    place = sf.try_add(sf.try_multiply(sf.try_subtract(pane, sf.lit(first)), sf.lit(_SLOTS)), slot)
    return sf.get(table, place.try_cast("int"))


def _hashable(kind: DataType) -> bool:
    """Whether Spark hashes values of the type: not maps, nor what holds them."""
    return not any(word in kind.simpleString() for word in ("map<", "variant"))
