"""Rejected rows, with their reason, for the late sink."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from skypane.operators.entry.gate import Gate
from skypane.operators.entry.reasons import FUTURE, REASON
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.crossing import Crossing
from skypane.runtime.spark.engine.partials import PartialReader, PartialRef, attempt_name
from skypane.runtime.spark.engine.plq import REJECTED, PaneLevel
from skypane.runtime.spark.schema import from_spark
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.store import Store


def schema_of(schema: pa.Schema) -> pa.Schema:
    """Return the schema of rejected rows: the rows', and why they were rejected."""
    return schema.append(pa.field(REASON, pa.string()))


@dataclass(frozen=True, slots=True)
class AheadStage:
    """Writes the rows beyond the gate's limit, which are held, and yields references to them; travels to the workers."""

    gate: Gate
    store: Store
    batch_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = [
            table for batch in from_spark(batches) for table in _future(self.gate, pa.Table.from_batches([batch]))
        ]
        tables = [table for table in tables if table.num_rows]
        context = TaskContext.get()
        name = attempt_name(self.batch_id, context.partitionId() if context else 0)
        refs = partials.write(self.store, name, tables) if tables else []
        yield pa.RecordBatch.from_pydict({"report": [json.dumps([ref.to_json() for ref in refs])]})


def write_ahead(rows: DataFrame, stage: AheadStage, crossing: Crossing) -> tuple[PartialRef, ...]:
    """Write the held rows of a batch, which the late sink gets if they are given up one day.

    Only the driver can tell which they are, when it has seen the whole batch; they are rare, and for them the batch is
    read once more.
    """
    return _refs(crossing.run(rows, stage, lambda reports: stage.store.remove({ref.file for ref in _refs(reports)})))


def _refs(reports: Iterable[str]) -> tuple[PartialRef, ...]:
    return tuple(PartialRef.from_json(ref) for report in reports for ref in json.loads(report))


def given_up(gate: Gate, store: Store, refs: Iterable[PartialRef], panes: Collection[int]) -> list[pa.Table]:
    """Return the rows of these panes that were held, with their reason."""
    tables = map(PartialReader(store), refs)
    return [table.filter(_in_panes(gate, table, panes)) for table in tables]


def gather(schema: pa.Schema, level: PaneLevel, store: Store, future: Iterable[pa.Table]) -> Answers:
    """Return all rows that are rejected with a batch: those that the tasks wrote, late or unusable, and `future`."""
    tables = [*map(PartialReader(store.child(REJECTED)), level.rejected_rows), *future]
    tables = [table.cast(schema_of(schema)) for table in tables]
    return Answers(schema_of(schema), row_count=sum(table.num_rows for table in tables), tables=tuple(tables))


def _future(gate: Gate, rows: pa.Table) -> Iterator[pa.Table]:
    for rejected in gate.split(rows).rejection.rows:
        yield rejected.filter(pc.field(REASON) == FUTURE)


def _in_panes(gate: Gate, rows: pa.Table, panes: Collection[int]) -> pa.Array:
    return pa.array(np.isin(gate.panes_of(rows), list(panes)))
