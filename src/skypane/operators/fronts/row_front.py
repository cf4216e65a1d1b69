"""The front of rows: takes tables of rows, returns tables of updates.

FrontRows keeps the points of successive steps comparable, and numbers the rows. A front has points and row numbers; the
number of a row is its place here. Values are compared as they are. Values that have ranks only within one table
(decimals, integers beyond 2**53, chains) are ranked again together with all stored rows, and the front is rebuilt from
them. It is also rebuilt when many rows here are no longer needed; the others then get new numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed
from skypane.kernels.column_layout import frozen
from skypane.operators.aggregates.grouping import dense_codes
from skypane.operators.fronts.chunked_table import ChunkedTable
from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.fronts.front_operator import ADD, NewPoints, Updates
from skypane.operators.fronts.rescalable_front import RescalableFront
from skypane.operators.fronts.shards import UNSHARDED, ShardPlan
from skypane.operators.stays import WindowStays
from skypane.preference import Preference
from skypane.types import ConfigError, FloatArray, IntArray, Micros

ACTION = "action"
ACTION_TIME = "action_time"

_SPARE: Final = 50_000
"""Number of unneeded rows and keys that are kept because copying the others would cost more."""


class FrontRows:
    """Rows of `schema` and their front under a preference with one level; one for each value of columns `groups`."""

    def __init__(self, preference: Preference, groups: tuple[str, ...], window: Micros, schema: pa.Schema) -> None:
        self._preference = preference
        self._groups = groups
        self._window = window
        self._front = RescalableFront(len(preference.levels[0]), window, grouped=bool(groups))
        self._rows = ChunkedTable(schema)
        self.keys = schema.empty_table().select(groups)  # row g is the key of group g
        self._lasting = True

    def step(self, rows: pa.Table, times: IntArray, until: Micros, plan: ShardPlan = UNSHARDED) -> Updates:
        """Take the rows of [clock, until), in any order; return the updates of that span, with row numbers."""
        arrivals = self._arrivals(rows, times, plan)
        self._front.rescale(plan)
        updates = self._front.step(arrivals, until)
        self._add(rows, times)  # after the step, so that rejected rows leave no trace
        return updates

    def currents(self, rows: pa.Table, times: IntArray, clocks: Sequence[Micros]) -> Iterator[pa.Table]:
        """Take the rows of [clock, clocks[-1]), in order of time; yield current() at each clock until the next step."""
        arrivals = self._arrivals(rows, times, UNSHARDED)  # may replace the front
        found = self._front.currents(arrivals, clocks)
        self._add(rows, times)
        return map(self._rows.at, found)

    def stays(self, rows: pa.Table, times: IntArray, clocks: Sequence[Micros]) -> tuple[pa.Table, WindowStays]:
        """Take the rows as currents() does; return each row that is in current() at some of `clocks`, and at which ones."""
        arrivals = self._arrivals(rows, times, UNSHARDED)  # may replace the front
        found = self._front.stays(arrivals, clocks)
        self._add(rows, times)
        return self._rows.at(found.numbers), found

    def numbered(self, numbers: IntArray) -> pa.Table:
        """Return rows by number."""
        return self._rows.at(numbers)

    def current(self) -> pa.Table:
        """Return the rows on the front after all updates before the clock."""
        return self._rows.at(self._front.current())

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front; with the clock, these are the whole state."""
        return self._rows.at(self._front.kept())

    def __len__(self) -> int:
        """Return the number of rows stored."""
        return len(self._front)

    @property
    def resident(self) -> int:
        """The number of shards that stay in this process; 0 if the front has another form."""
        return self._front.resident

    def _add(self, rows: pa.Table, times: IntArray) -> None:
        if rows.num_rows:
            self._rows.add(rows, int(times.max()))

    def _arrivals(self, rows: pa.Table, times: IntArray, plan: ShardPlan) -> NewPoints:
        self._rows.drop_before(self._front.clock - self._window)
        points = self._preference.points(rows)
        values = points.values
        comparable = points.lasting and self._lasting
        here = self._rows.count + self.keys.num_rows
        if rows.num_rows and (not comparable or here > 2 * len(self._front) + _SPARE):
            values = self._rebuild(rows, plan)
        first = self._rows.end
        groups = self._groups_of(rows) if self._groups else None
        return NewPoints(values, times, np.arange(first, first + rows.num_rows), groups)

    def _rebuild(self, rows: pa.Table, plan: ShardPlan) -> FloatArray:
        """Discard unneeded rows, and rank the others together with the new rows; return the points of the new rows.

        The front gets the form of `plan`.
        """
        stored = self._front.snapshot()
        kept = np.sort(stored.rows)
        before = self._rows.at(kept)
        self._rows = ChunkedTable(rows.schema)
        if len(kept):
            self._rows.add(before, int(stored.times.max()))
        points = self._preference.points(pa.concat_tables([before, rows]))
        self._lasting = points.lasting
        if stored.groups is not None:  # drop groups without rows
            present, groups = np.unique(stored.groups, return_inverse=True)
            self.keys = self.keys.take(pa.array(present))
            stored = stored._replace(groups=groups)
        numbers = np.searchsorted(kept, stored.rows)
        stored = stored._replace(points=points.values[numbers], rows=numbers)
        self._front = RescalableFront.restore(stored, self._window, plan)
        return points.values[len(kept) :]

    def _groups_of(self, rows: pa.Table) -> IntArray:
        """Return the group of each row; a known group keeps its number."""
        keys = pa.concat_tables([self.keys, rows.select(self._groups)])
        codes, size = dense_codes(keys, self._groups)
        numbers, firsts = keyed.number_groups(frozen(codes), size, frozen(np.zeros(1, np.int64)))
        known = self.keys.num_rows
        if len(firsts) > known:
            self.keys = keys.take(pa.array(firsts))
        groups: IntArray = numbers[known:]
        return groups


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

    def step(self, rows: pa.Table, until: Micros, plan: ShardPlan = UNSHARDED) -> pa.Table:
        """Take the rows of [clock, until), in any order; return the updates of that span: action, its time, the row."""
        return self._update_table(self._rows.step(rows, self._query.times(rows), until, plan))

    def current(self) -> pa.Table:
        """Return the rows on the front after all updates before the clock."""
        return self._rows.current()

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front; with the clock, these are the whole state."""
        return self._rows.stored()

    def __len__(self) -> int:
        """Return the number of rows stored."""
        return len(self._rows)

    @property
    def resident(self) -> int:
        """The number of shards of the front that stay in this process; 0 if the front has another form."""
        return self._rows.resident

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
