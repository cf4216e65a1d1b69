"""The same queries on a static DataFrame: lift in every partition, move partials, combine and lower.

Partials travel as bytes, one row per pane and partition, so that any query's partial fits through the same exchange.
Windows are cut into runs of consecutive ones; a pane goes to every run that holds a window of it, which is one run
for most panes, so merges are shared inside a run and hardly anything moves twice.
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

from skypane.operators.entry.gate import Gate
from skypane.operators.entry.reasons import rankable
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import BUFFER_ROWS, PaneQuery
from skypane.operators.query import Query
from skypane.operators.step import step_bytes
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.runtime.gather import as_tables, decoded, encoded, gathered, pieces
from skypane.runtime.headroom import Headroom, for_windows, limited, require
from skypane.runtime.spark.machine.collector import keep_loaded
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.schema import answer_schema, from_spark
from skypane.runtime.spark.versions import partitioned
from skypane.types import BadInputError, ConfigError, MemoryLimitError
from skypane.wording import count, size

Invalid: TypeAlias = Literal["error", "drop"]
"""What becomes of a row whose time is null, or whose criterion is null or NaN."""

FEWER_AT_ONCE = "have more and smaller partitions (repartition), take fewer tasks at once (local[1]), or give the machine more memory"
NARROWER = "ask for fewer columns, of fewer rows or in windows, or give the machine more memory"

PIECE = 64 << 20
"""Bytes of what goes to Java at once, about: it holds such a piece several times, and none of 2 GiB."""

_MOST_PACKED = 2**31 - 1 - PIECE
RUN_OVERLAPS = 8
"""Windows in a run, as a multiple of how many windows overlap: one pane in eight is sent to two runs."""


def whole(rows: DataFrame, schema: pa.Schema, query: Query, invalid: Invalid) -> DataFrame:
    """Return the answer over all rows; `schema` is the rows' in Arrow."""
    rows, schema = pruned(rows, schema, {*query.required, *query.reads(schema)})
    if invalid == "error":
        rows = without_gaps(rows, query.required)
    lifted = rows.mapInArrow(_LiftAll(query, invalid), "partial binary")
    # One task merges: partials are small, and one merge of all at once beats a tree of merges.
    return lifted.repartition(1).mapInArrow(
        _CombineAll(query), answer_schema(query.output_schema(schema), rows, schema)
    )


def windowed(rows: DataFrame, schema: pa.Schema, plan: Plan, invalid: Invalid) -> DataFrame:
    """Return the answer over each window; `schema` is the rows' in Arrow."""
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
    return routed.mapInArrow(_AnswerRuns(query, run), answer_schema(query.output_schema(schema), rows, schema))


def pruned(rows: DataFrame, schema: pa.Schema, read: Iterable[str]) -> tuple[DataFrame, pa.Schema]:
    """Return the rows with only the columns that are `read`, and their schema in Arrow; Spark skips the others at the source.

    Where none is read, one of ours stands for the rows: Arrow's tables without columns have none.
    """
    wanted = set(read)
    kept = [field for field in schema if field.name in wanted]
    if not kept:
        return rows.select(sf.lit(True).alias("row")), pa.schema([("row", pa.bool_())])  # noqa: FBT003 - a value
    if len(kept) == len(schema):
        return rows, schema
    return rows.select(*(field.name for field in kept)), pa.schema(kept)


def without_gaps(rows: DataFrame, columns: Iterable[str]) -> DataFrame:
    """Return the same rows; a null or NaN in one of `columns` fails the query when it runs.

    In Java, where that is one line; from a Python worker the line would stand below a page of its trace. Within the
    columns, not as a filter, which Spark may move to where rows are that another filter or a join takes away.
    """
    return rows.withColumns({name: _gapless(rows, name) for name in dict.fromkeys(columns)})


def _gapless(rows: DataFrame, name: str) -> Column:
    column = rows[name]
    gap, what = column.isNull(), "null"
    if isinstance(rows.schema[name].dataType, FloatType | DoubleType):
        gap, what = gap | sf.isnan(column), "null or NaN"
    said = f"cannot rank rows whose {name} is {what}: clean them first, or leave them out with invalid='drop'"
    return sf.when(gap, sf.raise_error(sf.lit(said))).otherwise(column)


def check_invalid(invalid: str) -> None:
    """Raise ConfigError unless it is one of the two ways to treat rows that cannot be ranked or placed."""
    if invalid not in ("error", "drop"):
        raise ConfigError(f"invalid must be 'error' or 'drop', got {invalid!r}")


def check_rejected(rejected: Mapping[str, int], invalid: Invalid) -> None:
    """Raise BadInputError, saying how many rows of a task cannot be ranked and why, unless they may be left out."""
    if rejected and invalid == "error":
        counts = ", ".join(f"{count} rows with {reason}" for reason, count in sorted(rejected.items()))
        raise BadInputError(
            f"cannot rank {counts} (in one partition of the data, others may have more): "
            f"clean them first, or leave them out with invalid='drop'"
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
    """Combines and lowers all partials that come."""

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
    """Lifts a partition pane by pane; says which runs, of `run` windows each, hold each pane."""

    query: Query
    gate: Gate
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
    """Answers every window of the runs whose panes come; `run` is how many windows a run has."""

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
        worker = self.query.worker(for_windows(NARROWER))
        for task in panes.all_windows():
            if task.window // self.run == run:
                yield from pieces(worker.answer(task, _unpacked).rows, PIECE)


def _bytes(tables: Iterable[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def _packed_row(partial: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"partial": _packed(partial)})


def _packed(partial: pa.Table) -> pa.BinaryArray:
    """Return a partial as one value; its bytes are not copied once more."""
    buffer = encoded(partial)
    if buffer.size > _MOST_PACKED:
        raise MemoryLimitError(
            f"a partial of {count(partial.num_rows)} rows takes {size(buffer.size)}, and Spark moves no value of more than "
            f"{size(_MOST_PACKED)}: {NARROWER}"
        )
    edges = pa.array([0, buffer.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, edges, buffer])


def _unpacked(partial: pa.BinaryScalar) -> pa.Table:
    return decoded(partial.as_buffer())
