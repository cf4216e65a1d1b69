"""A table of the rows that a front may still return: it grows at its end and shrinks at its beginning."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import IntArray, Micros

_PIECES: Final = 16
"""Maximum number of pieces of rows in memory; an answer searches each of them."""


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

    def drop_before(self, time: Micros) -> None:
        """Drop the first pieces, as long as all their rows are before `time`."""
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
