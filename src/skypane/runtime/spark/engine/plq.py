"""The pane-level query as one Arrow map stage: rows in, files of partials out, small reports to the driver."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skypane.control.splitting import ByPane, Routing
from skypane.operators.entry.counts import PaneCount, merged_sources
from skypane.operators.pane_query import Lifted, PaneQuery
from skypane.plan import Plan
from skypane.progress.arrivals import SourceCount
from skypane.runtime.spark.store import PARTIALS, PartialRef, Store, attempt_name

REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class PaneReport:
    """One partial that a task wrote, and the rows it stands for."""

    count: PaneCount
    ref: PartialRef


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task did; `busy` is seconds spent on its rows, waiting for them left out."""

    rows: int
    busy: float
    panes: tuple[PaneReport, ...]
    late: tuple[PaneCount, ...]
    rejected: dict[str, int]
    sources: dict[str, SourceCount]
    rejected_file: str | None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        value = json.loads(text)
        panes = (PaneReport(PaneCount(**pane["count"]), PartialRef(**pane["ref"])) for pane in value["panes"])
        late = tuple(PaneCount(**count) for count in value["late"])
        sources = {name: SourceCount(*count) for name, count in value["sources"].items()}
        return cls(**value | {"panes": tuple(panes), "late": late, "sources": sources})


@dataclass(frozen=True, slots=True)
class LiftStage:
    """What a task has to know; travels to the workers."""

    plan: Plan
    store: Store
    batch_id: int
    first_open: int | None
    keep_rejected: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lift the rows of one task; yield its report as one row."""
        worker = PaneQuery(self.plan.query, self.plan.gate, self.first_open, keep_rejected=self.keep_rejected)
        busy, rows = 0.0, 0
        for batch in batches:
            began = time.perf_counter()
            worker.absorb(batch)
            rows += batch.num_rows
            busy += time.perf_counter() - began
        began = time.perf_counter()
        report = self._report(worker.close(), rows, lambda: busy + time.perf_counter() - began)
        yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})

    def _report(self, lifted: Lifted, rows: int, busy: Callable[[], float]) -> TaskReport:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        refs = []
        if lifted.partials:
            name = attempt_name(self.batch_id, task)
            refs = self.store.child(PARTIALS).write_partials(name, [part.partial for part in lifted.partials])
        rejected = None
        if lifted.rejected_rows:
            rejected = attempt_name(self.batch_id, task)
            self.store.child(REJECTED).write_partials(rejected, lifted.rejected_rows)
        return TaskReport(
            rows=rows,
            busy=busy(),
            panes=tuple(PaneReport(part.count, ref) for part, ref in zip(lifted.partials, refs, strict=True)),
            late=lifted.late,
            rejected=lifted.rejected,
            sources=lifted.sources,
            rejected_file=rejected,
        )


@dataclass(frozen=True, slots=True)
class PaneLevel:
    """The reports of all tasks of a batch, and what they say together."""

    tasks: tuple[TaskReport, ...]

    @property
    def rows(self) -> int:
        return sum(task.rows for task in self.tasks)

    @property
    def panes(self) -> Iterator[PaneReport]:
        return (pane for task in self.tasks for pane in task.panes)

    @property
    def counts(self) -> Iterator[PaneCount]:
        """The panes of every row with a time worth believing, late ones with them."""
        yield from (pane.count for pane in self.panes)
        yield from (count for task in self.tasks for count in task.late)

    @property
    def rejected(self) -> Counter[str]:
        return sum((Counter(task.rejected) for task in self.tasks), Counter())

    @property
    def sources(self) -> dict[str, SourceCount]:
        """What each source sent, where a source column is named."""
        return merged_sources(task.sources for task in self.tasks)

    @property
    def rejected_files(self) -> list[str]:
        return [task.rejected_file for task in self.tasks if task.rejected_file]


def run(rows: DataFrame, stage: LiftStage, routing: Routing | None) -> PaneLevel:
    """Lift a batch: one job, one Python hop, and an exchange before it only where a routing is given."""
    if routing is not None:
        rows = _routed(rows, stage.plan, routing)
    reports = rows.mapInArrow(stage, "report string").collect()
    return PaneLevel(tuple(TaskReport.from_json(row.report) for row in reports))


def _routed(rows: DataFrame, plan: Plan, routing: Routing) -> DataFrame:
    if not isinstance(routing, ByPane):
        return rows.repartition(routing.workers)
    micros = sf.unix_micros(sf.col(_quoted(plan.time)).cast("timestamp"))
    # Absurd times overflow, to null. Division is in floating point: off by a pane at worst, and no answer depends on it.
    pane = sf.floor(sf.try_subtract(micros, sf.lit(plan.windows.offset)) / sf.lit(plan.windows.pane))
    worker = sf.coalesce(sf.pmod(pane, sf.lit(routing.workers)), sf.lit(0)).cast("int")
    return rows.repartitionById(routing.workers, worker)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
