"""Rows and their fronts: keeps the points of successive steps comparable, and numbers the rows.

A front has points and row numbers; the number of a row is its place here. Values are compared as they are. Values that
have ranks only within one table (decimals, integers beyond 2**53, chains) are ranked again together with all stored
rows, and the front is rebuilt from them. It is also rebuilt when many rows here are no longer needed; the others then
get new numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels import keyed
from skypane.kernels.column_layout import frozen
from skypane.operators.aggregates.grouping import dense_codes
from skypane.operators.fronts.front import NewPoints
from skypane.operators.fronts.fronts import UNSHARDED, Fronts, ShardPlan
from skypane.operators.fronts.updates import Updates
from skypane.preference import Preference
from skypane.types import FloatArray, IntArray, Micros

_PIECES: Final = 16
"""Maximum number of pieces of rows in memory; an answer searches each of them."""

_SPARE: Final = 50_000
"""Number of unneeded rows and keys that are kept because copying the others would cost more."""


class FrontRows:
    """Rows of `schema` and their front under a preference with one level; one for each value of columns `groups`."""

    def __init__(self, preference: Preference, groups: tuple[str, ...], window: Micros, schema: pa.Schema) -> None:
        self._preference = preference
        self._groups = groups
        self._window = window
        self._fronts = Fronts(len(preference.levels[0]), window, grouped=bool(groups))
        self._rows = ChunkedTable(schema)
        self.keys = schema.empty_table().select(groups)  # row g is the key of group g
        self._lasting = True

    def step(self, rows: pa.Table, times: IntArray, until: Micros, sharding: ShardPlan = UNSHARDED) -> Updates:
        """Take the rows of [clock, until), in any order; return the updates of that span, with row numbers."""
        arrivals, groups = self._arrivals(rows, times)
        updates = self._fronts.step(arrivals, groups, until, sharding)
        self._add(rows, times)  # after the step, so that rejected rows leave no trace
        return updates

    def currents(self, rows: pa.Table, times: IntArray, clocks: Sequence[Micros]) -> Iterator[pa.Table]:
        """Take the rows of [clock, clocks[-1]), in order of time; yield current() at each clock until the next step."""
        arrivals, groups = self._arrivals(rows, times)
        found = self._fronts.currents(arrivals, groups, clocks)
        self._add(rows, times)
        return map(self._rows.at, found)

    def numbered(self, numbers: IntArray) -> pa.Table:
        """Return rows by number."""
        return self._rows.at(numbers)

    def current(self) -> pa.Table:
        """Return the rows on the front after all updates before the clock."""
        return self._rows.at(self._fronts.current())

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front; with the clock, these are the whole state."""
        return self._rows.at(self._fronts.kept())

    def __len__(self) -> int:
        """Return the number of rows stored."""
        return len(self._fronts)

    def _add(self, rows: pa.Table, times: IntArray) -> None:
        if rows.num_rows:
            self._rows.add(rows, int(times.max()))

    def _arrivals(self, rows: pa.Table, times: IntArray) -> tuple[NewPoints, IntArray | None]:
        self._rows.forget_before(self._fronts.clock - self._window)
        points = self._preference.points(rows)
        values = points.values
        comparable = points.lasting and self._lasting
        here = self._rows.count + self.keys.num_rows
        if rows.num_rows and (not comparable or here > 2 * len(self._fronts) + _SPARE):
            values = self._begin_anew(rows)
        first = self._rows.end
        groups = self._groups_of(rows) if self._groups else None
        return NewPoints(values, times, np.arange(first, first + rows.num_rows)), groups

    def _begin_anew(self, rows: pa.Table) -> FloatArray:
        """Discard unneeded rows, and rank the others together with the new rows; return the points of the new rows."""
        stored, groups = self._fronts.snapshot()
        kept = np.sort(stored.rows)
        before = self._rows.at(kept)
        self._rows = ChunkedTable(rows.schema)
        if len(kept):
            self._rows.add(before, int(stored.times.max()))
        points = self._preference.points(pa.concat_tables([before, rows]))
        self._lasting = points.lasting
        if groups is not None:  # drop groups without rows
            present, groups = np.unique(groups, return_inverse=True)
            self.keys = self.keys.take(pa.array(present))
        numbers = np.searchsorted(kept, stored.rows)
        stored = stored._replace(points=points.values[numbers], rows=numbers)
        self._fronts = Fronts.restore(stored, groups, self._window)
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


class _Piece(NamedTuple):
    rows: pa.Table
    #: no row has a later time
    newest: Micros


class ChunkedTable:
    """A table that grows at its end and shrinks at its beginning, in a few pieces; long pieces are rarely copied.

    A row is identified by its number, which never changes.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._none = schema.empty_table()
        self._pieces: deque[_Piece] = deque()
        #: the numbers are [begin, end)
        self._begin = 0
        self.end = 0

    @property
    def count(self) -> int:
        """The number of rows in the table."""
        return self.end - self._begin

    def add(self, rows: pa.Table, newest: Micros) -> None:
        """Append rows, at least one; none has a later time than `newest`."""
        self._pieces.append(_Piece(rows.combine_chunks(), newest))
        self.end += rows.num_rows
        if len(self._pieces) > _PIECES:
            self._join()

    def forget_before(self, time: Micros) -> None:
        """Discard the first pieces, as long as all their rows are before `time`."""
        while self._pieces and self._pieces[0].newest < time:
            self._begin += self._pieces.popleft().rows.num_rows

    def _join(self) -> None:
        """Join the last pieces, and each piece before them that is less than twice as long as all after it."""
        last: deque[_Piece] = deque()
        after = 0
        while self._pieces and (
            not last or len(self._pieces) > _PIECES // 2 or self._pieces[-1].rows.num_rows < 2 * after
        ):
            last.appendleft(self._pieces.pop())
            after += last[0].rows.num_rows
        rows = pa.concat_tables([piece.rows for piece in last]).combine_chunks()
        self._pieces.append(_Piece(rows, max(piece.newest for piece in last)))

    def at(self, numbers: IntArray) -> pa.Table:
        """Return the rows with these numbers, which may repeat; ascending numbers are gathered piece by piece."""
        places, tables = numbers - self._begin, [piece.rows for piece in self._pieces]
        if (places[1:] < places[:-1]).any():
            return _taken(pa.concat_tables(tables), places)
        bounds = np.cumsum([0, *(table.num_rows for table in tables)])
        edges = np.searchsorted(places, bounds).tolist()
        parts = zip(tables, bounds.tolist(), edges, edges[1:], strict=False)
        taken = [_taken(table, places[a:b] - first) for table, first, a, b in parts if b > a]
        return pa.concat_tables(taken) if taken else self._none


def _taken(rows: pa.Table, places: IntArray) -> pa.Table:
    return pc.take(rows, pa.array(places), boundscheck=False)
