"""The front of rows: tables in, tables of updates out; one front for each group where there are groups.

A front knows points and numbers. Here are the rows that belong to them, and what keeps the points of one step comparable
with those of the next: values are compared as they are, while what has ranks only within one table (decimals, whole numbers
beyond 2**53, chains) is ranked anew with all that is stored, and the front made again from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

import numpy as np
import pyarrow as pa

from skypane.operators.continuous.front import Arrivals
from skypane.operators.continuous.fronts import NOBODY, Asking, Fronts
from skypane.operators.continuous.query import ContinuousSkyline
from skypane.operators.continuous.updates import ADD, Updates
from skypane.preference.groups import group_codes
from skypane.types import ConfigError, FloatArray, IntArray, Micros

ACTION = "action"
ACTION_TIME = "action_time"

_SPARE: Final = 50_000
"""Rows that nothing needs any more, kept because to copy the others would cost more."""

_CHUNKS: Final = 64
"""Pieces in which the rows may lie in memory."""


class RowFront:
    """The front of `query` over rows of `schema`, and every change of it."""

    def __init__(self, query: ContinuousSkyline, schema: pa.Schema) -> None:
        self._query = query
        self._updates = update_schema(query, schema)
        d = len(query.preference.levels[0])
        self._fronts = Fronts(d, query.window, grouped=bool(query.groups))
        self._rows = schema.empty_table()
        self._numbers: IntArray = np.empty(0, np.int64)
        self._next = 0  # number of the next row
        self._keys = self._rows.select(query.groups)  # the row of group g is its key
        self._lasting = True

    @classmethod
    def of(cls, query: ContinuousSkyline, schema: pa.Schema, tables: Iterable[pa.Table], clock: Micros | None) -> Self:
        """Return a front that has come to `clock` with these rows: all that are stored then, and any others before."""
        front = cls(query, schema)
        if clock is not None:
            front.step(pa.concat_tables([schema.empty_table(), *tables]), clock)
        return front

    def step(self, rows: pa.Table, until: Micros, asking: Asking = NOBODY) -> pa.Table:
        """Take the rows of [clock, until), in any order; return the updates of that span: action, its time, the row."""
        points = self._query.preference.points(rows)
        comparable = points.lasting and self._lasting
        if (rows.num_rows and not comparable) or self._rows.num_rows > 2 * len(self._fronts) + _SPARE:
            return self._step_anew(rows, until, asking)
        return self._feed(rows, points.values, until, asking)

    def current(self) -> pa.Table:
        """Return the rows on the front, once all updates before the clock are applied."""
        return self._numbered(self._fronts.current())

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front: all that must be remembered, beside the clock."""
        return self._numbered(self._fronts.kept())

    def __len__(self) -> int:
        """Count the rows stored."""
        return len(self._fronts)

    def _step_anew(self, rows: pa.Table, until: Micros, asking: Asking) -> pa.Table:
        """Forget rows that nothing needs, rank the others together with those that come, and go on with these ranks."""
        stored, groups = self._fronts.snapshot()
        kept = np.sort(stored.rows)
        self._rows, self._numbers = self._numbered(kept), kept
        points = self._query.preference.points(pa.concat_tables([self._rows, rows]))
        self._lasting = points.lasting
        if groups is not None:  # those that have vanished are forgotten
            present, groups = np.unique(groups, return_inverse=True)
            self._keys = self._keys.take(pa.array(present))
        stored = stored._replace(points=points.values[np.searchsorted(kept, stored.rows)])
        self._fronts = Fronts.restore(stored, groups, self._query.window)
        return self._feed(rows, points.values[len(kept) :], until, asking)

    def _feed(self, rows: pa.Table, points: FloatArray, until: Micros, asking: Asking) -> pa.Table:
        first, self._next = self._next, self._next + rows.num_rows
        arrivals = Arrivals(points, self._query.times(rows), np.arange(first, self._next))
        updates = self._fronts.step(arrivals, self._groups_of(rows) if self._query.groups else None, until, asking)
        if rows.num_rows:
            self._rows = pa.concat_tables([self._rows, rows])
            self._numbers = np.concatenate([self._numbers, arrivals.rows])
            if self._rows.num_columns and self._rows.column(0).num_chunks > _CHUNKS:
                self._rows = self._rows.combine_chunks()
        return self._told(updates)

    def _groups_of(self, rows: pa.Table) -> IntArray:
        """Return the group of each row; one that is known has the number that it had."""
        keys = pa.concat_tables([self._keys, rows.select(self._query.groups)])
        codes = group_codes(keys, self._query.groups)
        _, first, inverse = np.unique(np.zeros(0) if codes is None else codes, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first)
        number = np.empty_like(by_appearance)
        number[by_appearance] = np.arange(len(first))
        known, self._keys = self._keys.num_rows, keys.take(pa.array(first[by_appearance]))
        groups: IntArray = number[inverse[known:]]
        return groups

    def _numbered(self, numbers: IntArray) -> pa.Table:
        return self._rows.take(pa.array(np.searchsorted(self._numbers, numbers)))

    def _told(self, updates: Updates) -> pa.Table:
        rows = self._numbered(updates.rows)
        actions = pa.array(["DEL", "ADD"]).take(pa.array((updates.actions == ADD).astype(np.int8)))
        times = pa.array(updates.times).cast(self._updates.field(ACTION_TIME).type)
        return pa.Table.from_arrays([actions, times, *rows.columns], schema=self._updates)


def update_schema(query: ContinuousSkyline, schema: pa.Schema) -> pa.Schema:
    """Return the schema of updates of rows of `schema`; ConfigError if a column has a name that updates need."""
    # Spark tells columns apart without regard to case.
    taken = [name for name in schema.names if name.lower() in (ACTION, ACTION_TIME)]
    if taken:
        raise ConfigError(f"updates add columns {ACTION} and {ACTION_TIME}: rename {', '.join(taken)}")
    kind = pa.timestamp("us", schema.field(query.time).type.tz)
    return pa.schema([pa.field(ACTION, pa.string()), pa.field(ACTION_TIME, kind), *schema])
