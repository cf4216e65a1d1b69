"""Queries on a static DataFrame: lift every partition, exchange the partials, combine and lower them.

Partials travel as bytes, one row per pane and partition, so the same exchange serves every query. Windows are divided
into runs of consecutive windows. A pane goes to every run with a window that holds it, which is one run for most panes,
so windows share merges inside a run and few partials move twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

from skypane.naming import backticked
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import rankable
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import BUFFER_ROWS, PaneQuery
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.runtime.memory_headroom import Headroom, for_windows, limited, require
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.spark_schema import answer_schema, from_spark, pruned
from skypane.runtime.spark.versions import partitioned
from skypane.runtime.table_batching import as_tables, decoded, encoded, gathered, pieces
from skypane.types import BadInputError, ConfigError, MemoryLimitError
from skypane.wording import count, size

Invalid: TypeAlias = Literal["error", "drop"]
"""Treatment of a row whose time is null, or whose criterion is null or NaN: the query fails, or the row is dropped."""

FEWER_AT_ONCE = (
    "use more and smaller partitions (repartition), run fewer tasks at once (local[1]), or give the machine more memory"
)
NARROWER = "query fewer columns or fewer rows, use windows, or give the machine more memory"

PIECE = 64 << 20
"""Approximate bytes sent to Java at once; Java holds a piece several times, and cannot hold one of 2 GiB."""

_MOST_PACKED = 2**31 - 1 - PIECE
RUN_OVERLAPS = 8
"""Windows in a run, as a multiple of the number of overlapping windows; with 8, one pane in eight goes to two runs."""


def whole(rows: DataFrame, schema: pa.Schema, query: Query, invalid: Invalid) -> DataFrame:
    """Return the answer over all rows, whose Arrow schema is `schema`."""
    rows, schema = pruned(rows, schema, {*query.required, *query.reads(schema)})
    if invalid == "error":
        rows = without_gaps(rows, query.required)
    lifted = rows.mapInArrow(_LiftAll(query, invalid), "partial binary")
    # One task merges all partials: they are small, and a single merge is faster than a tree of merges.
    return lifted.repartition(1).mapInArrow(
        _CombineAll(query), answer_schema(query.output_schema(schema), rows.schema, schema)
    )


def windowed(rows: DataFrame, schema: pa.Schema, plan: Plan, invalid: Invalid) -> DataFrame:
    """Return the answer over each window of the rows, whose Arrow schema is `schema`."""
    rows, schema = pruned(rows, schema, plan.reads(schema))
    query, gate = plan.window_query(schema), plan.gate
    if invalid == "error":
        rows = without_gaps(rows, (plan.time, *plan.query.required))
    workers = parallelism(rows.sparkSession)
    run = query.windows.overlap * RUN_OVERLAPS
    lifted = rows.mapInArrow(
        _LiftPanes(query.query, gate, run, invalid), "pane long, first long, last long, partial binary"
    )
    runs = sf.explode(sf.sequence("first", "last")).alias("run")
    placed = lifted.select("pane", "partial", runs)
    routed = partitioned(placed, workers, sf.pmod("run", sf.lit(workers)).cast("int"))
    return routed.mapInArrow(_AnswerRuns(query, run), answer_schema(query.output_schema(schema), rows.schema, schema))


def without_gaps(rows: DataFrame, columns: Iterable[str]) -> DataFrame:
    """Return the same rows; a null or NaN in one of `columns` fails the query when it runs.

    The check runs in Java, whose error is one line; an error of a Python worker follows a page of its trace. It is part
    of the columns, because Spark may push a filter down to rows that another filter or a join removes.
    """
    checked = {name: _gapless(rows, name) for name in dict.fromkeys(columns)}
    return rows.withColumns(checked) if checked else rows  # Spark Connect fails on an empty mapping


def _gapless(rows: DataFrame, name: str) -> Column:
    column = rows[backticked(name)]
    floating = isinstance(rows.schema[name].dataType, FloatType | DoubleType)
    gap = column.isNull() | sf.isnan(column) if floating else column.isNull()
    return sf.when(gap, sf.raise_error(sf.lit(gap_message(name, floating)))).otherwise(column)


def gap_message(name: str, floating: bool) -> str:
    """Return the error for a row without a value in a column, which has floating-point numbers, or others."""
    what = "null or NaN" if floating else "null"
    return f"cannot rank rows whose {name} is {what}: clean them first, or drop them with invalid='drop'"


def check_invalid(invalid: str) -> None:
    """Raise ConfigError unless `invalid` is "error" or "drop"."""
    if invalid not in ("error", "drop"):
        raise ConfigError(f"invalid must be 'error' or 'drop', got {invalid!r}")


def check_rejected(rejected: Mapping[str, int], invalid: Invalid) -> None:
    """Raise BadInputError, with the number of a task's rejected rows by reason, unless they may be dropped."""
    if rejected and invalid == "error":
        counts = ", ".join(f"{count} rows with {reason}" for reason, count in sorted(rejected.items()))
        raise BadInputError(
            f"cannot rank {counts} (in one partition of the data; others may have more): "
            f"clean them first, or drop them with invalid='drop'"
        )


@dataclass(frozen=True, slots=True)
class _LiftAll:
    """Lifts a partition as one pane."""

    query: Query
    invalid: Invalid

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partials: list[pa.Table] = []
        with limited("the rows of a task", FEWER_AT_ONCE):
            for rows in gathered(as_tables(from_spark(batches)), BUFFER_ROWS):
                require(step_bytes([rows, *partials]), "the rows of a task", FEWER_AT_ONCE)
                partials.append(self._lifted(rows))
                if _bytes(partials) >= PIECE:
                    partials = [self.query.combine(partials)]
                if _bytes(partials) >= PIECE:
                    yield _packed_row(partials.pop())
            if partials:
                yield _packed_row(self.query.combine(partials))
        keep_loaded(_LiftAll)

    def _lifted(self, rows: pa.Table) -> pa.Table:
        usable, rejected = rankable(rows, tuple(self.query.required))
        check_rejected(rejected, self.invalid)
        return self.query.lift(usable)


@dataclass(frozen=True, slots=True)
class _CombineAll:
    """Combines and lowers all partials."""

    query: Query

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partials: list[pa.Table] = []
        held = step = 0
        with limited("the answer", NARROWER):
            for packed in (partial for batch in batches for partial in batch.column("partial")):
                partials.append(_unpacked(packed))
                held += partials[-1].nbytes
                step += step_bytes(partials[-1:])
                require(step, f"the answer ({size(held)} of partials so far)", NARROWER)
            if partials:
                yield from pieces(self.query.lower(self.query.combine(partials)), PIECE)


@dataclass(frozen=True, slots=True)
class _LiftPanes:
    """Lifts a partition pane by pane, and yields each partial with its runs, of `run` windows each."""

    query: Query
    gate: EntryRules
    run: int
    invalid: Invalid

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker, room = PaneQuery(self.query, self.gate), Headroom(FEWER_AT_ONCE)
        with limited("the rows of a task", FEWER_AT_ONCE):
            for batch in from_spark(batches):
                room.require(batch.nbytes, worker.step_bytes(batch), "the rows of a task")
                worker.absorb(batch)
            lifted = worker.close()
        check_rejected(lifted.rejection.reasons, self.invalid)
        for part in lifted.partials:
            windows = self.gate.windows.windows_of(part.pane)
            first, last = windows[0] // self.run, windows[-1] // self.run
            row = {"pane": [part.pane], "first": [first], "last": [last], "partial": _packed(part.partial)}
            yield pa.RecordBatch.from_pydict(row)
        keep_loaded(_LiftPanes)


@dataclass(frozen=True, slots=True)
class _AnswerRuns:
    """Answers every window of the runs whose panes it receives; a run has `run` windows."""

    query: WindowQuery
    run: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs: defaultdict[int, list[tuple[int, pa.BinaryScalar]]] = defaultdict(list)
        room = Headroom(NARROWER)
        with limited("the windows of a task", NARROWER):
            for batch in batches:
                room.require(batch.nbytes, batch.nbytes, "the partials of a task")
                columns = batch.column("run").to_pylist(), batch.column("pane").to_pylist(), batch.column("partial")
                for run, pane, partial in zip(*columns, strict=True):
                    runs[run].append((pane, partial))
            for run in sorted(runs):
                yield from self._answer(run, runs.pop(run))

    def _answer(self, run: int, partials: list[tuple[int, pa.BinaryScalar]]) -> Iterator[pa.RecordBatch]:
        panes: OpenPanes[pa.BinaryScalar] = OpenPanes.empty(self.query.windows).add(partials)
        tasks = [task for task in panes.all_windows() if task.window // self.run == run]
        worker = self.query.worker(for_windows(NARROWER), len(tasks))
        for task in tasks:
            yield from pieces(worker.answer(task, _unpacked).rows, PIECE)


def _bytes(tables: Iterable[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def _packed_row(partial: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"partial": _packed(partial)})


def _packed(partial: pa.Table) -> pa.BinaryArray:
    """Return a partial as one binary value, without another copy of its bytes."""
    buffer = encoded(partial)
    if buffer.size > _MOST_PACKED:
        raise MemoryLimitError(
            f"a partial of {count(partial.num_rows)} rows takes {size(buffer.size)}, and Spark moves no value of more "
            f"than {size(_MOST_PACKED)}: {NARROWER}"
        )
    edges = pa.array([0, buffer.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, edges, buffer])


def _unpacked(partial: pa.BinaryScalar) -> pa.Table:
    return decoded(partial.as_buffer())
