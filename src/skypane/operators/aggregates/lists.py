"""Lists by group: many values for each key in one Arrow column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import IntArray


def as_lists(values: pa.Array, groups: IntArray, n: int) -> pa.Array:
    """Return n lists: the values of each group, in the order in which they stand; empty where there is none."""
    if len(groups) and (np.diff(groups) < 0).any():
        order = np.argsort(groups, kind="stable")
        values, groups = values.take(pa.array(order)), groups[order]
    edges = np.searchsorted(groups, np.arange(n + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(edges), values)


def listed(lists: pa.Array, groups: IntArray) -> tuple[pa.Array, IntArray]:
    """Return the values in all lists, and for each the group of its list."""
    return pc.list_flatten(lists), groups[pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)]
