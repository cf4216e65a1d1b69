"""Rows and their fronts: what keeps the points of one step comparable with those of the next, and one row apart from another.

A front knows points and numbers; the number of a row is its place here. Values are compared as they are, while what has
ranks only within one table (decimals, whole numbers beyond 2**53, chains) is ranked anew with all that is stored, and the
front made again from it. So it is, too, when many rows are here that nothing needs any more: the others get new numbers then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels import keyed
from skypane.kernels.layout import frozen
from skypane.operators.aggregates.grouping import dense_codes
from skypane.operators.continuous.front import Arrivals
from skypane.operators.continuous.fronts import NOBODY, Asking, Fronts
from skypane.operators.continuous.updates import Updates
from skypane.preference import Preference
from skypane.types import FloatArray, IntArray, Micros

_PIECES: Final = 16
"""Pieces in which the rows may lie in memory, each of which is looked into for an answer."""

_SPARE: Final = 50_000
"""Rows and keys that nothing needs any more, kept because to copy the others would cost more."""


class FrontRows:
    """Rows of `schema`, and their front under a preference of one level; one for each value of the columns `groups`."""

    def __init__(self, preference: Preference, groups: tuple[str, ...], window: Micros, schema: pa.Schema) -> None:
        self._preference = preference
        self._groups = groups
        self._window = window
        self._fronts = Fronts(len(preference.levels[0]), window, grouped=bool(groups))
        self._rows = Pieces(schema)
        self.keys = schema.empty_table().select(groups)  # the row of group g is its key
        self._lasting = True

    def step(self, rows: pa.Table, times: IntArray, until: Micros, asking: Asking = NOBODY) -> Updates:
        """Take the rows of [clock, until), in any order; return the updates of that span, rows by number."""
        arrivals, groups = self._arrivals(rows, times)
        updates = self._fronts.step(arrivals, groups, until, asking)
        self._add(rows, times)  # not before: what is refused leaves nothing
        return updates

    def currents(self, rows: pa.Table, times: IntArray, clocks: Sequence[Micros]) -> Iterator[pa.Table]:
        """Take the rows of [clock, clocks[-1]), in order of time; yield, until the next step, what is current at each clock."""
        arrivals, groups = self._arrivals(rows, times)
        found = self._fronts.currents(arrivals, groups, clocks)
        self._add(rows, times)
        return map(self._rows.at, found)

    def numbered(self, numbers: IntArray) -> pa.Table:
        """Return rows by number."""
        return self._rows.at(numbers)

    def current(self) -> pa.Table:
        """Return the rows on the front, once all updates before the clock are applied."""
        return self._rows.at(self._fronts.current())

    def stored(self) -> pa.Table:
        """Return the rows that are or may yet be on the front: all that must be remembered, beside the clock."""
        return self._rows.at(self._fronts.kept())

    def __len__(self) -> int:
        """Count the rows stored."""
        return len(self._fronts)

    def _add(self, rows: pa.Table, times: IntArray) -> None:
        if rows.num_rows:
            self._rows.add(rows, int(times.max()))

    def _arrivals(self, rows: pa.Table, times: IntArray) -> tuple[Arrivals, IntArray | None]:
        self._rows.forget_before(self._fronts.clock - self._window)
        points = self._preference.points(rows)
        values = points.values
        comparable = points.lasting and self._lasting
        here = self._rows.count + self.keys.num_rows
        if rows.num_rows and (not comparable or here > 2 * len(self._fronts) + _SPARE):
            values = self._begin_anew(rows)
        first = self._rows.end
        groups = self._groups_of(rows) if self._groups else None
        return Arrivals(values, times, np.arange(first, first + rows.num_rows)), groups

    def _begin_anew(self, rows: pa.Table) -> FloatArray:
        """Forget rows that nothing needs, and rank the others together with those that come; return the points of these."""
        stored, groups = self._fronts.snapshot()
        kept = np.sort(stored.rows)
        before = self._rows.at(kept)
        self._rows = Pieces(rows.schema)
        if len(kept):
            self._rows.add(before, int(stored.times.max()))
        points = self._preference.points(pa.concat_tables([before, rows]))
        self._lasting = points.lasting
        if groups is not None:  # those that have vanished are forgotten
            present, groups = np.unique(groups, return_inverse=True)
            self.keys = self.keys.take(pa.array(present))
        numbers = np.searchsorted(kept, stored.rows)
        stored = stored._replace(points=points.values[numbers], rows=numbers)
        self._fronts = Fronts.restore(stored, groups, self._window)
        return points.values[len(kept) :]

    def _groups_of(self, rows: pa.Table) -> IntArray:
        """Return the group of each row; one that is known has the number that it had."""
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


class Pieces:
    """A table that grows at its end and goes at its beginning: in pieces, not many, of which long ones are seldom copied.

    A row is known by its number, which stays the same.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._none = schema.empty_table()
        self._pieces: deque[_Piece] = deque()
        #: the numbers are [begin, end)
        self._begin = 0
        self.end = 0

    @property
    def count(self) -> int:
        """How many rows are here."""
        return self.end - self._begin

    def add(self, rows: pa.Table, newest: Micros) -> None:
        """Put rows after those that are there, at least one; none has a later time than `newest`."""
        self._pieces.append(_Piece(rows.combine_chunks(), newest))
        self.end += rows.num_rows
        if len(self._pieces) > _PIECES:
            self._join()

    def forget_before(self, time: Micros) -> None:
        """Forget the first pieces, as long as they have no row from that time on."""
        while self._pieces and self._pieces[0].newest < time:
            self._begin += self._pieces.popleft().rows.num_rows

    def _join(self) -> None:
        """Join the last pieces, and each before them that is not twice as long as all after it."""
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
        """Return the rows of some numbers, of which some may come twice; those in order are gathered piece by piece."""
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
