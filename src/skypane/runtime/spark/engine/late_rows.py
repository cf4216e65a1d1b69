"""Rejected rows, with their reason, for the late sink."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from skypane.operators.changes.passed_rows import with_columns
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.raw_text import KEPT, is_sent
from skypane.operators.entry.reject_reasons import FUTURE, REASON
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.plq import REJECTED, LiftReports
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.spark_schema import from_spark

_REASON: Final = pa.schema([(REASON, pa.string())])


def added(rows: pa.Schema) -> pa.Schema:
    """Return the columns that rows of `rows` get when they are rejected: their raw text, if it comes with them, and the reason."""
    return pa.schema([*(KEPT if is_sent(rows) else ()), *_REASON])


def schema_of(schema: pa.Schema, more: pa.Schema = _REASON) -> pa.Schema:
    """Return the schema of rejected rows: that of the rows, and the columns that they get."""
    return pa.schema([*schema, *more])


@dataclass(frozen=True, slots=True)
class FarAheadStage:
    """Writes the held rows, which are beyond the gate's limit, and yields references to them; travels to workers."""

    gate: EntryRules
    store: DocumentStore
    batch_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = [
            table for batch in from_spark(batches) for table in _future(self.gate, pa.Table.from_batches([batch]))
        ]
        tables = [table for table in tables if table.num_rows]
        context = TaskContext.get()
        name = attempt_name(self.batch_id, context.partitionId() if context else 0)
        refs = partials.write(self.store, name, tables) if tables else []
        yield pa.RecordBatch.from_pydict({"report": [json.dumps([ref.snapshot() for ref in refs])]})


def write_ahead(rows: DataFrame, stage: FarAheadStage, transfer: ArrowTransfer) -> tuple[PartialReference, ...]:
    """Write the held rows of a batch, which the late sink receives if they are quarantined later.

    Only the driver, which sees the reports of the whole batch, knows which rows are held. They are rare, so the batch
    is read once more to find them.
    """
    return _refs(transfer.run(rows, stage, lambda reports: stage.store.remove({ref.file for ref in _refs(reports)})))


def _refs(reports: Iterable[str]) -> tuple[PartialReference, ...]:
    return tuple(PartialReference.restored(ref) for report in reports for ref in json.loads(report))


def abandoned(
    gate: EntryRules, store: DocumentStore, refs: Iterable[PartialReference], panes: Collection[int]
) -> list[pa.Table]:
    """Return the held rows of the panes `panes`, with their reason."""
    tables = map(PartialReader(store), refs)
    return [table.filter(_in_panes(gate, table, panes)) for table in tables]


def gather(schema: pa.Schema, level: LiftReports, store: DocumentStore, future: Iterable[pa.Table]) -> BatchRows:
    """Return all rows that a batch rejects, of `schema`: the late and unusable ones that the tasks wrote, and `future`.

    Held rows may have been read by an earlier form of the query, with other columns.
    """
    tables = [table.cast(schema) for table in map(PartialReader(store.child(REJECTED)), level.rejected_rows)]
    tables += [with_columns(table, schema) for table in future]
    return BatchRows(schema, row_count=sum(table.num_rows for table in tables), tables=tuple(tables))


def _future(gate: EntryRules, rows: pa.Table) -> Iterator[pa.Table]:
    for rejected in gate.split(rows).rejection.rows:
        yield rejected.filter(pc.field(REASON) == FUTURE)


def _in_panes(gate: EntryRules, rows: pa.Table, panes: Collection[int]) -> pa.Array:
    return pa.array(np.isin(gate.panes_of(rows), list(panes)))
