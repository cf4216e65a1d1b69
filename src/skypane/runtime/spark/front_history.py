"""The history of a front over a static DataFrame: the interval in which each row is on it.

Each partition drops the rows that can never be on the front; one task, or one per group, compares the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.operators.entry.rejected import Rejection
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.row_buffer import BUFFER_ROWS
from skypane.plan import ContinuousPlan
from skypane.runtime.memory_headroom import Headroom, limited
from skypane.runtime.spark.batch import (
    FEWER_AT_ONCE,
    NARROWER,
    PIECE,
    Invalid,
    check_invalid,
    check_rejected,
    without_gaps,
)
from skypane.runtime.spark.spark_schema import answer_schema, from_spark
from skypane.runtime.table_batching import as_tables, gathered, pieces
from skypane.types import ConfigError
from skypane.wording import size

FRONT_FROM = "front_from"
FRONT_TO = "front_to"


def of(rows: DataFrame, schema: pa.Schema, plan: ContinuousPlan, invalid: Invalid) -> DataFrame:
    """Return the rows that are ever on the front, each with its interval; `schema` is the rows' Arrow schema."""
    check_invalid(invalid)
    stamped = _stamped(schema, plan)
    if invalid == "error":
        rows = without_gaps(rows, (plan.time, *plan.query.required))
    lifted = rows.mapInArrow(_LiftAll(plan, invalid), rows.schema)
    groups = plan.query.groups
    gathered_rows = lifted.repartition(*(lifted[name] for name in groups)) if groups else lifted.repartition(1)
    return gathered_rows.mapInArrow(_Intervals(plan, schema, stamped), answer_schema(stamped, rows.schema, schema))


def _stamped(schema: pa.Schema, plan: ContinuousPlan) -> pa.Schema:
    # Spark's column names are case-insensitive.
    taken = [name for name in schema.names if name.lower() in (FRONT_FROM, FRONT_TO)]
    if taken:
        raise ConfigError(f"the history adds columns {FRONT_FROM} and {FRONT_TO}: rename {', '.join(taken)}")
    kind = pa.timestamp("us", schema.field(plan.time).type.tz)
    return pa.schema([pa.field(FRONT_FROM, kind), pa.field(FRONT_TO, kind), *schema])


@dataclass(frozen=True, slots=True)
class _LiftAll:
    """Drops the rows of a partition that can never be on the front."""

    plan: ContinuousPlan
    invalid: Invalid

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partials: list[pa.Table] = []
        rejection, room = Rejection(), Headroom(FEWER_AT_ONCE)
        with limited("the rows of a task", FEWER_AT_ONCE):
            for rows in gathered(as_tables(from_spark(batches)), BUFFER_ROWS):
                room.require(rows.nbytes, step_bytes([rows]), "the rows of a task")
                entry = self.plan.gate.split(rows)
                rejection = rejection.merge(entry.rejection)
                if entry.usable:
                    partials.append(self.plan.query.lift(pa.concat_tables(part.rows for part in entry.usable)))
            check_rejected(rejection.reasons, self.invalid)
            if partials:  # of one schema: after a condition on the rows Spark may know that no value is null
                yield from pieces(self.plan.query.combine(partials), PIECE)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Yields the rows that are ever on the front, of all rows or of whole groups, with their intervals."""

    plan: ContinuousPlan
    schema: pa.Schema
    stamped: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with limited("the history", NARROWER):
            rows = pa.Table.from_batches(self._affordable(batches), self.schema)
            stays = self.plan.query.stays(rows)
            kind = self.stamped.field(FRONT_FROM).type
            spans = (pa.array(times).cast(kind) for times in (stays.starts, stays.ends))
            columns = rows.take(pa.array(stays.rows)).columns
            yield from pieces(pa.Table.from_arrays([*spans, *columns], schema=self.stamped), PIECE)

    def _affordable(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches; raise MemoryLimitError when there is not enough memory to process all of them."""
        room, seen, step = Headroom(NARROWER), 0, 0
        for batch in from_spark(batches):
            seen += batch.nbytes
            step += step_bytes([pa.Table.from_batches([batch])])
            room.require(batch.nbytes, step, f"the history ({size(seen)} of rows so far)")
            yield batch
