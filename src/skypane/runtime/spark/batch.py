"""Queries on a static DataFrame: lift every partition, exchange the partials, combine and lower them.

Over few rows of a query without windows one task does all of that; of many, most may be dropped inside Spark first
(control/static_way.py).

Partials travel as bytes, those of some consecutive panes of a partition in one row, so the same exchange serves every
query. Windows are divided into runs of consecutive windows. A pane goes to every run with a window that holds it, which is
one run for most panes, so windows share merges inside a run and few partials move twice. Where workers write the answers themselves
(answer_files.py), the last stage is most of the work, so tasks also share a run by its keys, if the query allows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType, StructType

from skypane.control.static_way import static_way
from skypane.naming import backticked
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import rankable
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import PanePartial, PaneQuery
from skypane.operators.query import DivisibleQuery, Query, is_of_package
from skypane.operators.row_buffer import BUFFER_ROWS
from skypane.operators.window_query import WindowQuery
from skypane.operators.witnessed_points import Prefilter
from skypane.plan import Plan
from skypane.runtime.memory_headroom import Headroom, for_windows, limited, require
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.prefiltered_rows import (
    PARTIAL,
    PROOF,
    LiftProven,
    check_proof,
    prefiltered,
    rules_for,
)
from skypane.runtime.spark.rows_at_rest import rows_at_rest
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
PACKED_ROWS = 65_536
"""Rows of partials that are packed together: one of few rows costs several times its share of many, and more do not fit caches."""
BATCH_ROWS = 65_536
"""Rows of a batch of answers on its way to Java, as of one on its way to Python (machine/session.py)."""
RUN_OVERLAPS = 8
"""Windows in a run, as a multiple of the number of overlapping windows; with 8, one pane in eight goes to two runs."""


MOST_PARTS = 8
"""Most parts of the keys of a run: a task that lifts reads its partials once for each part (control/costs.py, divided_per_row)."""


Answering: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Answers the partials that a task receives; travels to the workers."""


@dataclass(frozen=True)
class LastStage:
    """The last stage of a query: the partials, in their tasks, and the function that turns those of a task into answers.

    One task that lifts, too, has rows in place of partials.

    schema   the Arrow schema of the answers
    columns  their Spark schema
    lifted   the Arrow schema of the rows that tasks lift, all of which are sent to Python; None: not all are, or none
    """

    partials: DataFrame
    answer: Answering
    schema: pa.Schema
    columns: StructType
    lifted: pa.Schema | None = None

    @property
    def answers(self) -> DataFrame:
        """The lazy answers."""
        return self.partials.mapInArrow(_Gathered(self.answer), self.columns)


def whole(
    rows: DataFrame, schema: pa.Schema, query: Query, invalid: Invalid, hidden: Collection[str] = ()
) -> LastStage:
    """Return the answer over all rows, whose Arrow schema is `schema`, without the columns `hidden`."""
    rows, schema = pruned(rows, schema, {*query.required, *query.reads(schema)})
    rules, workers = rules_for(query, schema, rows), parallelism(rows.sparkSession)
    way = static_way(rows_at_rest(rows), len(schema), None if rules is None else len(rules.level), workers)
    checked = without_gaps(rows, query.required) if invalid == "error" else rows
    shown = pa.schema([field for field in query.output_schema(schema) if field.name not in hidden])
    names, columns, lift = tuple(shown.names), answer_schema(shown, checked.schema, schema), _LiftAll(query, invalid)
    if way == "one task":
        return LastStage(checked.coalesce(1), _AnswerAll(lift, names), shown, columns)
    if way == "prefilter" and rules is not None:
        lifted = _proven(prefiltered(rows, checked, rules), query, invalid)
        return LastStage(lifted.repartition(1), _CombineAll(query, names, rules), shown, columns)
    lifted = checked.mapInArrow(lift, "partial binary")
    # One task merges all partials: they are small, and a single merge is faster than a tree of merges.
    return LastStage(lifted.repartition(1), _CombineAll(query, names), shown, columns, schema)


def _proven(kept: DataFrame, query: Query, invalid: Invalid) -> DataFrame:
    """Return the partials of prefiltered rows, with the proofs that are checked where all partials are."""
    return kept.mapInArrow(LiftProven(_LiftAll(query, invalid)), f"{PARTIAL} binary, {PROOF} binary")


def windowed(rows: DataFrame, schema: pa.Schema, plan: Plan, invalid: Invalid, *, shared: bool = False) -> LastStage:
    """Return the answer over each window of the rows, whose Arrow schema is `schema`.

    shared   whether tasks share the windows of a run by their keys
    """
    rows, schema = pruned(rows, schema, plan.reads(schema))
    query, gate = plan.window_query(schema), plan.gate
    if invalid == "error":
        rows = without_gaps(rows, (plan.time, *plan.query.required))
    workers = parallelism(rows.sparkSession)
    run = query.windows.overlap * RUN_OVERLAPS
    divisible = isinstance(query.query, DivisibleQuery) and query.query.divisible(schema)
    # A query of others may expect a partial as its own lift() returns it, not some of them with their panes.
    parts = min(workers, MOST_PARTS) if shared and divisible and is_of_package(query.query) else 1
    lifted = rows.mapInArrow(
        _LiftPanes(query.query, gate, run, invalid, parts), "first long, last long, panes array<long>, partial binary"
    )
    slots = sf.explode(sf.sequence("first", "last", sf.lit(parts).cast("long"))).alias("run")
    placed = lifted.select("panes", "partial", slots)
    routed = partitioned(placed, workers, sf.pmod("run", sf.lit(workers)).cast("int"))
    answers = query.output_schema(schema)
    columns = answer_schema(answers, rows.schema, schema)
    return LastStage(routed, _AnswerRuns(query, run, parts), answers, columns, schema)


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
class _Gathered:
    """Gathers answers into larger batches, as each has a fixed cost on its way to Java, and a window may have few rows."""

    answer: Answering

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in gathered(as_tables(self.answer(batches)), BATCH_ROWS, PIECE):
            yield from pieces(rows.combine_chunks(), PIECE)


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
class _AnswerAll:
    """Answers the query over the rows of one task, which are all rows."""

    lift: _LiftAll
    shown: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _CombineAll(self.lift.query, self.shown)(self.lift(batches))


@dataclass(frozen=True, slots=True)
class _CombineAll:
    """Combines and lowers all partials; an answer has the columns `shown`, or else all.

    rules   those by which rows were dropped, whose proofs come with the partials; None: no row was
    """

    query: Query
    shown: tuple[str, ...] | None = None
    rules: Prefilter | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partials: list[pa.Table] = []
        proofs: set[bytes] = set()
        held = step = 0
        with limited("the answer", NARROWER):
            for packed, proof in (row for batch in batches for row in self._rows(batch)):
                partials.append(_unpacked(packed))
                if proof is not None:
                    proofs.add(proof)
                held += partials[-1].nbytes
                step += step_bytes(partials[-1:])
                require(step, f"the answer ({size(held)} of partials so far)", NARROWER)
            if partials:
                yield from pieces(self._answer(partials, proofs), PIECE)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.BinaryScalar, bytes | None]]:
        """Yield partials, and the proof of the task from which each comes."""
        proofs: list[bytes | None] = [None] * batch.num_rows if self.rules is None else batch.column(PROOF).to_pylist()
        yield from zip(batch.column(PARTIAL), proofs, strict=True)

    def _answer(self, partials: list[pa.Table], proofs: set[bytes]) -> pa.Table:
        combined = self.query.combine(partials)
        if self.rules is not None:
            for proof in proofs:
                check_proof(self.rules, proof, combined)
        answer = self.query.lower(combined)
        return answer if self.shown is None else answer.select(list(self.shown))


@dataclass(frozen=True, slots=True)
class _LiftPanes:
    """Lifts a partition pane by pane, and yields each partial with its runs, of `run` windows each.

    A run is cut into `parts` parts of its keys: part p of run r is number r * parts + p.
    """

    query: Query
    gate: EntryRules
    run: int
    invalid: Invalid
    parts: int = 1

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker, room = PaneQuery(self.query, self.gate), Headroom(FEWER_AT_ONCE)
        with limited("the rows of a task", FEWER_AT_ONCE):
            for batch in from_spark(batches):
                room.require(batch.nbytes, worker.step_bytes(batch), "the rows of a task")
                worker.absorb(batch)
            lifted = worker.close()
        check_rejected(lifted.rejection.reasons, self.invalid)
        for (first, last, _), some in groupby(lifted.partials, self._runs):
            for block in gathered(map(_with_pane, some), PACKED_ROWS, PIECE):
                for number, rows in self._divided(block):
                    slots = {"first": [first * self.parts + number], "last": [last * self.parts + number]}
                    yield pa.RecordBatch.from_pydict({**slots, "panes": [_panes_of(rows)], "partial": _packed(rows)})
        keep_loaded(_LiftPanes)

    def _runs(self, part: PanePartial) -> tuple[int, int, pa.Schema]:
        """Return the first and the last run that needs a partial, and its schema."""
        windows = self.gate.windows.windows_of(part.pane)
        return windows[0] // self.run, windows[-1] // self.run, part.partial.schema

    def _divided(self, block: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the parts of a block of partials that have rows."""
        if self.parts == 1 or not isinstance(self.query, DivisibleQuery):
            parts: Iterable[pa.Table] = [block]
        else:
            divide = self.query.part_of
            parts = (divide(block, number, self.parts) for number in range(self.parts))
        for number, part in enumerate(parts):
            if part.num_rows:
                yield number, part


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The partials of some panes, as bytes."""

    packed: pa.BinaryScalar


@dataclass(frozen=True, slots=True)
class _PartialOfBlock:
    """The partial of one pane of a block."""

    block: _Block
    pane: int


class _Unpacking:
    """Unpacks blocks, each when the first of its partials is needed, and drops each when the last one has been."""

    def __init__(self) -> None:
        self._held: dict[_Block, dict[int, pa.Table]] = {}

    def __call__(self, ref: _PartialOfBlock) -> pa.Table:
        """Return a partial; a worker needs each once."""
        partials = self._held.get(ref.block, {})
        if ref.pane not in partials:
            partials = self._held[ref.block] = _by_pane(_unpacked(ref.block.packed))
        partial = partials.pop(ref.pane)
        if not partials:
            del self._held[ref.block]
        return partial


@dataclass(frozen=True, slots=True)
class _AnswerRuns:
    """Answers every window of the runs, or of the parts of their keys, whose panes it receives; a run has `run` windows."""

    query: WindowQuery
    run: int
    parts: int = 1

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs: defaultdict[int, list[tuple[int, _PartialOfBlock]]] = defaultdict(list)
        room = Headroom(NARROWER)
        with limited("the windows of a task", NARROWER):
            for batch in batches:
                room.require(batch.nbytes, batch.nbytes, "the partials of a task")
                columns = batch.column("run").to_pylist(), batch.column("panes").to_pylist(), batch.column("partial")
                for run, panes, packed in zip(*columns, strict=True):
                    block = _Block(packed)
                    runs[run] += [(pane, _PartialOfBlock(block, pane)) for pane in panes]
            for run in sorted(runs):
                yield from self._answer(run, runs.pop(run))

    def _answer(self, run: int, partials: list[tuple[int, _PartialOfBlock]]) -> Iterator[pa.RecordBatch]:
        panes = OpenPanes[_PartialOfBlock].empty(self.query.windows).add(partials)
        tasks = [task for task in panes.all_windows() if task.window // self.run == run // self.parts]
        worker, load = self.query.worker(for_windows(NARROWER), len(tasks)), _Unpacking()
        for task in tasks:
            yield from pieces(worker.answer(task, load).rows, PIECE)


def _with_pane(part: PanePartial) -> pa.Table:
    """Return the rows of a partial, with its pane as last column."""
    rows = part.partial
    name = f"{max(rows.column_names, key=len, default='')}_"  # longer than all others
    return rows.append_column(name, pa.array(np.full(rows.num_rows, part.pane)))


def _panes_of(block: pa.Table) -> list[int]:
    """Return the panes of a block, which have rows."""
    panes: list[int] = np.unique(block.columns[-1].to_numpy()).tolist()
    return panes


def _by_pane(block: pa.Table) -> dict[int, pa.Table]:
    """Return the partials of a block by their panes."""
    panes, rows = block.columns[-1].to_numpy(), block.drop_columns(block.column_names[-1:])
    edges = [0, *(np.flatnonzero(np.diff(panes)) + 1).tolist(), len(panes)]
    return {int(panes[begin]): rows.slice(begin, end - begin) for begin, end in pairwise(edges)}


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
