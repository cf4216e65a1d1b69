"""Estimates of the memory that a step over some tables takes: lifting rows, combining partials."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

_COPIES = 2
"""The output of a step, and its input copied into one piece, as a multiple of its input."""
_NUMBERS = 128
"""Further bytes per value, for its group, ranks and order. Lifting takes 30 to 250 per row, combining 10 to 250; the
most with keys or texts, or with criteria to compare. The items of a list take 70 each."""


def step_bytes(tables: Iterable[pa.Table]) -> int:
    """Return the estimated bytes that a step over all tables takes, in addition to the tables themselves.

    >>> step_bytes([pa.table({"n": pa.array([1, 2], pa.int64())})])
    288
    """
    return sum(_COPIES * int(table.nbytes) + _NUMBERS * _values(table) for table in tables)


def _values(table: pa.Table) -> int:
    """Return the number of rows, or of items in the lists of a column if that is larger."""
    lists = (column for column in table.columns if pa.types.is_list(column.type))
    items = (sum(len(chunk.flatten()) for chunk in column.chunks) for column in lists)
    return max([int(table.num_rows), *items])
