"""Rows and their fronts: what keeps the points of one step comparable with those of the next, and one row apart from another.

A front knows points and numbers; the number of a row is its place here. Values are compared as they are, while what has
ranks only within one table (decimals, whole numbers beyond 2**53, chains) is ranked anew with all that is stored, and the
front made again from it. So it is, too, when many rows are here that nothing needs any more: the others get new numbers then.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

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
"""Rows that nothing needs any more, kept because to copy the others would cost more."""


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
        self._rows.add(rows)  # not before: what is refused leaves nothing
        return updates

    def take(self, rows: pa.Table, times: IntArray, until: Micros) -> None:
        """Do as step(), without telling the updates."""
        arrivals, groups = self._arrivals(rows, times)
        self._fronts.take(arrivals, groups, until)
        self._rows.add(rows)

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

    def _arrivals(self, rows: pa.Table, times: IntArray) -> tuple[Arrivals, IntArray | None]:
        points = self._preference.points(rows)
        values = points.values
        comparable = points.lasting and self._lasting
        if rows.num_rows and (not comparable or self._rows.count > 2 * len(self._fronts) + _SPARE):
            values = self._begin_anew(rows)
        first = self._rows.count
        groups = self._groups_of(rows) if self._groups else None
        return Arrivals(values, times, np.arange(first, first + rows.num_rows)), groups

    def _begin_anew(self, rows: pa.Table) -> FloatArray:
        """Forget rows that nothing needs, and rank the others together with those that come; return the points of these."""
        stored, groups = self._fronts.snapshot()
        kept = np.sort(stored.rows)
        self._rows = Pieces.of(self._rows.at(kept))
        points = self._preference.points(pa.concat_tables([self._rows.at(np.arange(len(kept))), rows]))
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


class Pieces:
    """A table that grows: in pieces, not many, of which long ones are seldom copied."""

    def __init__(self, schema: pa.Schema) -> None:
        self._tables = [schema.empty_table()]
        self.count = 0

    @classmethod
    def of(cls, rows: pa.Table) -> Pieces:
        """Return what begins with these rows."""
        pieces = cls(rows.schema)
        pieces.add(rows)
        return pieces

    def add(self, rows: pa.Table) -> None:
        """Put rows after those that are there."""
        if not rows.num_rows:
            return
        self._tables.append(rows.combine_chunks())
        self.count += rows.num_rows
        if len(self._tables) > _PIECES:
            self._join()

    def _join(self) -> None:
        """Join the last pieces, and each before them that is not twice as long as all after it."""
        at, after = len(self._tables) - 1, self._tables[-1].num_rows
        while at > 0 and (at > _PIECES // 2 or self._tables[at - 1].num_rows < 2 * after):
            at -= 1
            after += self._tables[at].num_rows
        self._tables[at:] = [pa.concat_tables(self._tables[at:]).combine_chunks()]

    def at(self, places: IntArray) -> pa.Table:
        """Return the rows at some places, of which some may come twice; those in order are gathered piece by piece."""
        if (places[1:] < places[:-1]).any():
            return pa.concat_tables(self._tables).take(pa.array(places))
        bounds = np.cumsum([0, *(table.num_rows for table in self._tables)])
        edges = np.searchsorted(places, bounds).tolist()
        parts = zip(self._tables, bounds.tolist(), edges, edges[1:], strict=False)
        taken = [table.take(pa.array(places[a:b] - first)) for table, first, a, b in parts if b > a]
        return pa.concat_tables(taken) if taken else self._tables[0].slice(0, 0)
