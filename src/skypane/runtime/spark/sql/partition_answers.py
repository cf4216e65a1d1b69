"""The answer of a call: an instance absorbs the rows of its partition as columns, and answers them after the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import pyarrow as pa

from skypane.operators.entry.reject_reasons import rankable
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import PaneQuery
from skypane.operators.query import Query
from skypane.operators.row_buffer import BUFFER_BYTES, BUFFER_ROWS
from skypane.plan import Plan
from skypane.runtime.memory_headroom import Headroom, for_windows, limited, require
from skypane.runtime.spark.batch import FEWER_AT_ONCE, NARROWER, PIECE, Invalid, check_rejected
from skypane.runtime.table_batching import gathered, pieces

T = TypeVar("T")

TOGETHER: Final = 65_536
"""Rows of answers that are sent together: each batch has a fixed cost, and a window may have a single row."""


class Answers(Protocol):
    """Absorbs the rows of a partition, then answers them."""

    def absorb(self, batch: pa.RecordBatch) -> None: ...

    def answers(self) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class Answering:
    """How the rows of a partition are answered.

    plan       the windows; None: one answer over all rows
    local      whether partials are returned, which another call combines, instead of answers
    hidden     columns that answers leave out
    unchecked  whether the query has to be validated with the first rows, whose types were not known before
    schema     the columns that are sent, in order; the type null stands for that of an expression
    """

    query: Query
    plan: Plan | None
    invalid: Invalid
    local: bool
    hidden: tuple[str, ...]
    unchecked: bool
    schema: pa.Schema

    def begin(self, schema: pa.Schema) -> Answers:
        """Return what absorbs rows of `schema`; raise ConfigError if the query cannot run over them."""
        if self.unchecked:
            self.query.validate(schema)
        return _Whole(self) if self.plan is None else _Windowed(self, self.plan, schema)

    def shown(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield rows without the hidden columns, in batches of a size that Java can take."""
        unseen = [name for name in self.hidden if name in rows.schema.names]
        yield from pieces(rows.drop_columns(unseen) if unseen else rows, PIECE)


class _Whole:
    """One answer over all rows; rows are lifted when there are enough for a kernel to be fast."""

    def __init__(self, answering: Answering) -> None:
        self._of = answering
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._partials: list[pa.Table] = []

    def absorb(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= BUFFER_ROWS or self._bytes >= BUFFER_BYTES:
            self._lift()

    def answers(self) -> Iterator[pa.RecordBatch]:
        self._lift()
        if not self._partials:
            return
        with limited("the answer", NARROWER):
            require(step_bytes(self._partials), "the answer", NARROWER)
            combined = self._of.query.combine(self._partials)
            yield from self._of.shown(combined if self._of.local else self._of.query.lower(combined))

    def _lift(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        self._waiting, self._rows, self._bytes = [], 0, 0
        with limited("the rows of a task", FEWER_AT_ONCE):
            require(step_bytes([rows, *self._partials]), "the rows of a task", FEWER_AT_ONCE)
            usable, rejected = rankable(rows, tuple(self._of.query.required))
            check_rejected(rejected, self._of.invalid)
            self._partials.append(self._of.query.lift(usable))
            if sum(partial.nbytes for partial in self._partials) >= PIECE:
                self._partials = [self._of.query.combine(self._partials)]


class _Windowed:
    """An answer for each window that has rows."""

    def __init__(self, answering: Answering, plan: Plan, schema: pa.Schema) -> None:
        self._of = answering
        self._query = plan.window_query(schema)
        self._panes = PaneQuery(plan.query, plan.gate)
        self._room = Headroom(FEWER_AT_ONCE)

    def absorb(self, batch: pa.RecordBatch) -> None:
        with limited("the rows of a task", FEWER_AT_ONCE):
            self._room.require(batch.nbytes, self._panes.step_bytes(batch), "the rows of a task")
            self._panes.absorb(batch)

    def answers(self) -> Iterator[pa.RecordBatch]:
        with limited("the rows of a task", FEWER_AT_ONCE):
            lifted = self._panes.close()
        check_rejected(lifted.rejection.reasons, self._of.invalid)
        partials = [(part.pane, part.partial) for part in lifted.partials]
        if self._of.local:
            for _, partial in partials:
                yield from self._of.shown(partial)
            return
        with limited("the windows of a task", NARROWER):
            yield from self._windows(partials)

    def _windows(self, partials: Sequence[tuple[int, pa.Table]]) -> Iterator[pa.RecordBatch]:
        panes: OpenPanes[pa.Table] = OpenPanes.empty(self._query.windows).add(partials)
        tasks = panes.all_windows()
        worker = self._query.worker(for_windows(NARROWER), len(tasks))
        for rows in gathered((worker.answer(task, _itself).rows for task in tasks), TOGETHER):
            yield from pieces(rows.combine_chunks(), PIECE)


def _itself(partial: T) -> T:
    return partial
