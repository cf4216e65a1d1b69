"""Arrow columns as one array, and lists by group: many values for each key in one column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import IntArray


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])


def as_lists(values: pa.Array, groups: IntArray, n: int) -> pa.Array:
    """Return n lists: the values of each group in their order; the list of a group without values is empty."""
    if len(groups) and (np.diff(groups) < 0).any():
        order = np.argsort(groups, kind="stable")
        values, groups = values.take(pa.array(order)), groups[order]
    edges = np.searchsorted(groups, np.arange(n + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(edges), values)


def listed(lists: pa.Array, groups: IntArray) -> tuple[pa.Array, IntArray]:
    """Return the values of all lists, and for each value the group of its list."""
    return pc.list_flatten(lists), groups[pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)]


def valid_values(rows: pa.Table, name: str, groups: IntArray) -> tuple[pa.Array, IntArray]:
    """Return the values of a column that are not null, and their groups."""
    column = whole(rows.column(name))
    if not column.null_count:
        return column, groups
    kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return column.take(pa.array(kept)), groups[kept]


def one_of_equals(values: pa.Array) -> pa.Array:
    """Return values of which all NaNs have the same bits, and -0.0 is 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 + 0.0 = 0.0
    return pc.if_else(pc.is_nan(values), pa.scalar(np.nan, values.type), values)
