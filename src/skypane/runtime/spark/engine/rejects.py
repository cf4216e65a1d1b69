"""Rejected rows, with their reason, for the late sink."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from skypane.operators.entry.gate import Gate
from skypane.operators.entry.reasons import FUTURE, REASON
from skypane.runtime.spark.engine.partials import PartialReader
from skypane.runtime.spark.engine.plq import REJECTED, PaneLevel
from skypane.runtime.spark.schema import from_spark
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.store import Store


def schema_of(rows: pa.Schema) -> pa.Schema:
    """Return the schema of rejected rows: the rows', and why they were rejected."""
    return rows.append(pa.field(REASON, pa.string()))


@dataclass(frozen=True, slots=True)
class FutureStage:
    """Yields the rows that lie beyond the gate's limit, with their reason; travels to the workers."""

    gate: Gate

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in from_spark(batches):
            for rejected in self.gate.split(pa.Table.from_batches([batch])).rejection.rows:
                yield from rejected.filter(pc.field(REASON) == FUTURE).to_batches()


def gather(rows: DataFrame, schema: pa.Schema, level: PaneLevel, store: Store, future: FutureStage | None) -> Answers:
    """Return all rows of a batch that did not enter it.

    The tasks that lifted the batch wrote the late and the unusable ones. Only the driver can tell which are too far in
    the future, when it has seen the whole batch; for those, which are rare, the batch is read once more.
    """
    tables = list(map(PartialReader(store.child(REJECTED)), level.rejected_rows))
    if future is not None:
        columns = copy.deepcopy(rows.schema).add(REASON, "string")
        tables.append(rows.mapInArrow(future, columns).toArrow())
    tables = [table.cast(schema_of(schema)) for table in tables]
    return Answers(schema_of(schema), rows=sum(table.num_rows for table in tables), tables=tuple(tables))
