"""The partitions of a table: rows that are answered together have the same bucket, by their keys or their window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.by_preference import ByPreference
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.topk import TopK
from skypane.plan import Plan
from skypane.preference.column_checks import field_of
from skypane.windows import Windows

BUCKETS: Final = 32
"""Partitions at most: each is answered by an instance of its own. Keys are more than cores, and would be too many instances."""


def bucket(query: Query, plan: Plan | None, schema: pa.Schema, sql: Callable[[str], str]) -> str | None:
    """Return the SQL of the bucket of a row; None if all rows are answered together.

    sql   returns the SQL of a column
    """
    keys = _keys(query)
    if keys:
        return f"pmod(hash({', '.join(map(sql, keys))}), {BUCKETS})"
    # A time without zone has no instant whose number would be the same in every session.
    if plan is None or not _tumbling(plan.windows) or field_of(schema, plan.time).type.tz is None:
        return None
    return f"pmod({_window(f'unix_micros({sql(plan.time)})', plan.windows)}, {BUCKETS})"


def _keys(query: Query) -> Sequence[str]:
    """Return the columns that divide the rows into parts that are answered alone."""
    match query:
        case Aggregate():
            return query.by if query.choice.top is None else ()
        case KDominant() | TopDelta():
            return query.skyline.groups
        case ByPreference():
            return query.groups
        case TopK():
            return query.by
    return ()


def _window(time: str, windows: Windows) -> str:
    """Return the SQL of the number of the window of a time: no difference in it is out of 64 bits, whatever the time is."""
    length, offset = windows.length, windows.offset % windows.length
    rounded_up = f"CASE WHEN {time} % {length}L < 0 THEN 1 ELSE 0 END"  # div rounds towards zero
    before = f"CASE WHEN pmod({time}, {length}L) < {offset}L THEN 1 ELSE 0 END"
    return f"{time} div {length}L - {rounded_up} - {before}"


def _tumbling(windows: Windows) -> bool:
    return windows.slide == windows.length
