"""Stays: the unbroken runs of windows during which a row is in the answer.

A row of a skyline over long windows is in many answers one after the other. A stay says so once:

    window      0    1    2    3    4
    answers     a    a b  a b  b    a        stays of a: 0 to 2, 4 to 4; of b: 1 to 3

Rows have numbers here. A front knows the stay of each of its rows (fronts/front_operator.py). Any other answers are compared by
content: equal rows have one number, and rows that are equal within one answer have different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import row_ranks
from skypane.types import IntArray


class WindowStays(NamedTuple):
    """Rows by number, (n,) each: row numbers[i] is there at the steps first[i] to last[i], both included."""

    numbers: IntArray
    first: IntArray
    last: IntArray

    @classmethod
    def of_members(cls, members: Sequence[IntArray], steps: Sequence[int]) -> WindowStays:
        """Return the stays of rows that are there at some steps, by place of the step.

        members   the numbers of the rows at each step; each number at most once
        steps     number of each step, ascending; where one is left out, all stays end
        """
        low = min((int(part.min()) for part in members if len(part)), default=0)
        size = max((int(part.max()) for part in members if len(part)), default=low - 1) + 1 - low
        since, seen = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        ended = []
        for place, part in enumerate(members):
            here = part - low
            goes_on = place > 0 and steps[place] == steps[place - 1] + 1
            begins = here[seen[here] != place - 1] if goes_on else here
            back = begins[seen[begins] >= 0]
            ended.append(cls(back, since[back], seen[back]))
            since[begins] = place
            seen[here] = place
        there = np.flatnonzero(seen >= 0)
        stays = cls.joined([*ended, cls(there, since[there], seen[there])])
        return stays._replace(numbers=stays.numbers + low)

    @classmethod
    def between(cls, numbers: IntArray, starts: IntArray, ends: IntArray, clocks: IntArray) -> WindowStays:
        """Return the stays of rows that are there at each clock with start < clock <= end, by place among `clocks`."""
        first = np.searchsorted(clocks, starts, "right")
        last = np.searchsorted(clocks, ends, "right") - 1
        seen = first <= last
        return cls(numbers[seen], first[seen], last[seen])

    @classmethod
    def joined(cls, parts: Sequence[WindowStays]) -> WindowStays:
        """Return the stays of all parts, at least one, by row and step."""
        numbers, first, last = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((first, numbers))
        return cls(numbers[order], first[order], last[order])

    def counts(self, steps: int) -> IntArray:
        """Return how many rows are there at each of `steps` steps."""
        come, gone = (np.bincount(at, minlength=steps + 1)[: steps + 1] for at in (self.first, self.last + 1))
        counts: IntArray = np.cumsum(come - gone)[:steps]
        return counts


def numbered(tables: Sequence[pa.Table]) -> tuple[pa.Table, list[IntArray]]:
    """Return one row for each number, and the numbers of the rows of each table, at least one, of one schema.

    Rows of two tables have the same number if they are equal; of several equal rows of a table each has a number of its own.
    """
    rows = pa.concat_tables(tables)
    sizes = [table.num_rows for table in tables]
    if rows.num_rows == 0 or len(tables) == 1:
        return rows, _dealt(np.arange(rows.num_rows), sizes)
    contents = row_ranks(content_keys(rows))
    copies = _copies(contents, np.repeat(np.arange(len(sizes)), sizes))
    numbers = row_ranks([contents, copies]) if copies.any() else contents
    places = np.arange(rows.num_rows)
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = places[::-1]
    return rows.take(pa.array(firsts)), _dealt(numbers, sizes)


def _dealt(numbers: IntArray, sizes: Sequence[int]) -> list[IntArray]:
    return np.split(numbers, np.cumsum(sizes)[:-1])


def _copies(contents: IntArray, tables: IntArray) -> IntArray:
    """Return for each row how many equal rows come before it in its table."""
    order = np.lexsort((contents, tables))
    at, sorted_contents, sorted_tables = np.arange(len(order)), contents[order], tables[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (sorted_contents[1:] != sorted_contents[:-1]) | (sorted_tables[1:] != sorted_tables[:-1])
    copies = np.empty(len(order), np.int64)
    copies[order] = at - np.maximum.accumulate(np.where(begins, at, 0))
    return copies
