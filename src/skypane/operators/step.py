"""About how much memory a step over some tables takes: lifting rows, combining partials."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

_COPIES = 2
"""What comes of a step, and what goes into it in one piece, as a multiple of what goes into it."""
_NUMBERS = 128
"""Bytes for each value beside that: its group, its ranks, its order. Lifting takes 30 to 250 a row, combining 10 to 250, the most
where there are keys or texts, or criteria to compare; a list's items take 70 each."""


def step_bytes(tables: Iterable[pa.Table]) -> int:
    """Return about how many bytes a step over all of the tables takes beside what they take themselves.

    >>> step_bytes([pa.table({"n": pa.array([1, 2], pa.int64())})])
    288
    """
    return sum(_COPIES * int(table.nbytes) + _NUMBERS * _values(table) for table in tables)


def _values(table: pa.Table) -> int:
    """Return how many rows there are, or items in the lists of a column if those are more."""
    lists = (column for column in table.columns if pa.types.is_list(column.type))
    items = (sum(len(chunk.flatten()) for chunk in column.chunks) for column in lists)
    return max([int(table.num_rows), *items])
