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
