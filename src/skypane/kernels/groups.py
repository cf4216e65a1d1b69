"""One skyline per group: rows sorted by group once, all small groups in one compiled call, large ones one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from skypane.kernels.layout import codes_of, columns_of, points_of, take_points
from skypane.kernels.nested_loops import mark_skylines
from skypane.kernels.skyline import require_numbers, skyline_of_columns
from skypane.kernels.thinning import SMALL
from skypane.kernels.z_order import ROW_MASK, sorted_by_key
from skypane.types import IntArray


def skyline_indices_by_group(points: Any, groups: Any) -> IntArray:
    """Return the indices of the rows of `points` that no row of their own group dominates.

    `points` as for skyline_indices, (n, d); `groups` are (n,) integer codes, in any order. Result: int64 (m,), ascending.
    """
    columns = columns_of(points)
    codes = codes_of(groups, columns.shape[1])
    if codes.size == 0 or codes.min() == codes.max():
        return skyline_of_columns(columns)
    require_numbers(columns)
    order = _by_code(codes)
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], codes.size)
    keep = np.zeros(codes.size, np.bool_)
    small = ends - starts <= SMALL
    _small_groups(columns, order, starts[small], ends[small], keep)
    for start, end in zip(starts[~small], ends[~small], strict=True):
        members = order[start:end]
        keep[members[skyline_of_columns(take_points(columns, members))]] = True
    return np.flatnonzero(keep)


def _by_code(codes: IntArray) -> IntArray:
    """Return the indices of n >= 1 rows in ascending order of their codes."""
    least = codes.min()
    if int(codes.max()) - int(least) >= 1 << 32:
        return np.argsort(codes)
    keys = (codes - least).astype(np.uint64) << np.uint64(32)
    return (sorted_by_key(keys | np.arange(codes.size, dtype=np.uint64)) & ROW_MASK).astype(np.int64)


def _small_groups(columns: Any, order: IntArray, starts: IntArray, ends: IntArray, keep: Any) -> None:
    if starts.size == 0:
        return
    sizes = ends - starts
    after = np.cumsum(sizes)
    before = after - sizes
    members = order[np.repeat(starts - before, sizes) + np.arange(after[-1])]
    marks = np.zeros(members.size, np.bool_)
    mark_skylines(points_of(take_points(columns, members)), before, after, marks)
    keep[members[marks]] = True
