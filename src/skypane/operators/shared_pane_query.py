"""The pane-level query of several queries over the same rows: each row is read once and lifted for each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.rejected import Rejection
from skypane.operators.entry.shared_rejects import rejected_by
from skypane.operators.pane_query import LiftResult, PaneQuery, no_clock
from skypane.operators.query import Query
from skypane.operators.row_buffer import BUFFER_ROWS, RowBuffer, lifting_bytes
from skypane.types import IntArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SharedLift:
    """One of the queries: its entry rules, and the columns that it reads."""

    query: Query
    gate: EntryRules
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedResult:
    """The results of one worker by query, the seconds spent on each query, and the rejected rows if they are kept."""

    lifted: Mapping[str, LiftResult]
    busy: Mapping[str, float]
    rejected: tuple[pa.Table, ...]


class SharedPaneQuery:
    """One worker: absorbs record batches once, and keeps the partials of each query and pane.

    keep    whether to return the rejected rows, with their reason and the queries that reject them
    clock   returns seconds, to measure the work on each query
    """

    def __init__(
        self,
        lifts: Mapping[str, SharedLift],
        *,
        keep: bool = False,
        buffer_rows: int = BUFFER_ROWS,
        clock: Callable[[], float] = no_clock,
    ) -> None:
        self._lifts = lifts
        self._keep = keep
        self._clock = clock
        self._workers = {name: PaneQuery(lift.query, lift.gate, clock=clock) for name, lift in lifts.items()}
        self._busy = dict.fromkeys(lifts, 0.0)
        self._buffer = RowBuffer(buffer_rows)
        self._rejected: list[pa.Table] = []

    def absorb(self, batch: pa.RecordBatch, units: IntArray | None = None) -> None:
        """Add rows to the buffer, and lift them for all queries when it is full.

        units   the unit of each row (row_runs.py); None: the order of reading is not needed
        """
        if self._buffer.add(batch, units):
            self._lift()

    def step_bytes(self, *coming: pa.RecordBatch) -> int:
        """Return the estimated bytes of the next step, in addition to those held, if `coming` is absorbed before it.

        The queries lift one after another, so the largest step of one of them counts.
        """
        lifting = self._buffer.lifting + sum(map(lifting_bytes, coming))
        return lifting + max(worker.step_bytes() for worker in self._workers.values())

    def close(self) -> SharedResult:
        """Lift the remaining rows, and return the result of each query."""
        self._lift()
        lifted = {name: self._timed(name, worker.close) for name, worker in self._workers.items()}
        return SharedResult(lifted, self._busy, tuple(self._rejected))

    def _lift(self) -> None:
        if (taken := self._buffer.take()) is None:
            return
        rows, units = taken
        rejections = [self._timed(name, partial(self._take, name, rows, units)) for name in self._lifts]
        if self._keep and any(rejection.reasons for rejection in rejections):
            self._rejected.append(rejected_by(rows, {name: lift.gate for name, lift in self._lifts.items()}))

    def _take(self, name: str, rows: pa.Table, units: IntArray | None) -> Rejection:
        return self._workers[name].take(rows.select(self._lifts[name].columns), units)

    def _timed(self, name: str, work: Callable[[], T]) -> T:
        began = self._clock()
        done = work()
        self._busy[name] += self._clock() - began
        return done
