"""The best rows of a table under a chain of levels, each a skyline among the rows that the one before ranks equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skypane import kernels
from skypane.preference.criteria import Level
from skypane.preference.dense_ranks import row_ranks
from skypane.preference.orient import orient
from skypane.types import FloatArray, IntArray


def maximal_indices(table: pa.Table, levels: Sequence[Level], groups: IntArray | None) -> IntArray:
    """Return the indices of the rows than which no row of their group is better, ascending, shape (m,).

    groups: one code per row, shape (n,), or None for a single group.
    Each level considers only the rows that are best on the levels before: a row that is worse on an earlier level is
    not among the best, and rows that are equal to a best row on a level are best on it too.
    """
    if not levels:
        return np.arange(table.num_rows, dtype=np.int64)
    points = orient(table, levels[0]).values
    indices = kept = _skyline(points, groups)
    for level in levels[1:]:
        groups = _equal_rows(points[kept], None if groups is None else groups[kept])
        points = orient(_components(table, level).take(indices), level).values
        kept = _skyline(points, groups)
        indices = indices[kept]
    return indices


def _skyline(points: FloatArray, groups: IntArray | None) -> IntArray:
    return kernels.skyline_indices(points) if groups is None else kernels.skyline_indices_by_group(points, groups)


def _components(table: pa.Table, level: Level) -> pa.Table:
    columns = [criterion.column for component in level for criterion in component]
    return table.select(columns)


def _equal_rows(points: FloatArray, groups: IntArray | None) -> IntArray:
    """Return codes that are equal exactly for rows of one group with equal points, shape (n,)."""
    return row_ranks([*points.T] if groups is None else [groups, *points.T])
