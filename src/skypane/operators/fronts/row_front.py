"""The front of rows: computes tables of updates from tables of rows; one front for each group if there are groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
import pyarrow as pa

from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.fronts.front_rows import FrontRows
from skypane.operators.fronts.fronts import UNSHARDED, ShardPlan
from skypane.operators.fronts.updates import ADD, Updates
from skypane.types import ConfigError, Micros

ACTION = "action"
ACTION_TIME = "action_time"


class RowFront:
    """The front of `query` over rows of `schema`, and all of its changes."""

    def __init__(self, query: ContinuousSkyline, schema: pa.Schema) -> None:
        self._query = query
        self._updates = update_schema(query, schema)
        self._rows = FrontRows(query.preference, query.groups, query.window, schema)

    @classmethod
    def of(cls, query: ContinuousSkyline, schema: pa.Schema, tables: Iterable[pa.Table], clock: Micros | None) -> Self:
        """Return a front at `clock` made of these rows: all that are stored then, and possibly others before."""
        front = cls(query, schema)
        if clock is not None:
            front.step(pa.concat_tables([schema.empty_table(), *tables]), clock)
        return front

    def step(self, rows: pa.Table, until: Micros, sharding: ShardPlan = UNSHARDED) -> pa.Table:
        """Take the rows of [clock, until), in any order; return the updates of that span: action, its time, the row."""
        return self._update_table(self._rows.step(rows, self._query.times(rows), until, sharding))

    def current(self) -> pa.Table:
        """Return the rows on the front after all updates before the clock."""
        return self._rows.current()

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front; with the clock, these are the whole state."""
        return self._rows.stored()

    def __len__(self) -> int:
        """Return the number of rows stored."""
        return len(self._rows)

    def _update_table(self, updates: Updates) -> pa.Table:
        rows = self._rows.numbered(updates.rows)
        actions = pa.array(["DEL", "ADD"]).take(pa.array((updates.actions == ADD).astype(np.int8)))
        times = pa.array(updates.times).cast(self._updates.field(ACTION_TIME).type)
        return pa.Table.from_arrays([actions, times, *rows.columns], schema=self._updates)


def update_schema(query: ContinuousSkyline, schema: pa.Schema) -> pa.Schema:
    """Return the schema of updates of rows of `schema`; raise ConfigError if a column has a name that updates use."""
    # Spark's column names are case-insensitive.
    taken = [name for name in schema.names if name.lower() in (ACTION, ACTION_TIME)]
    if taken:
        raise ConfigError(f"updates add columns {ACTION} and {ACTION_TIME}: rename {', '.join(taken)}")
    kind = pa.timestamp("us", schema.field(query.time).type.tz)
    return pa.schema([pa.field(ACTION, pa.string()), pa.field(ACTION_TIME, kind), *schema])
