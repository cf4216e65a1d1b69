"""One skyline per group: rows are sorted by group; one compiled call handles all small groups, one more each large."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.batch_skyline import require_numbers, skyline_of_columns
from skypane.kernels.column_layout import codes_of, columns_of
from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.gathering import take_points
from skypane.kernels.simd import NONE, ONE, first_bit
from skypane.kernels.small_groups import STEP, PointBuffer, relations, room_for
from skypane.kernels.thinning import SMALL
from skypane.kernels.z_order import ROW_MASK, sorted_by_key
from skypane.types import BoolArray, FloatArray, IntArray

FEW: Final = 512
"""Largest group whose rows are all compared, 16 at a time; with two criteria SMALL, since a sweep is soon cheaper."""


def skyline_indices_by_group(points: Any, groups: Any) -> IntArray:
    """Return the indices of the rows of `points` that no row of their own group dominates.

    `points` is (n, d) as for skyline_indices; `groups` are (n,) integer codes, in any order. The result is int64 (m,),
    ascending.
    """
    columns = columns_of(points)
    codes = codes_of(groups, columns.shape[1])
    if codes.size == 0 or codes.min() == codes.max():
        return skyline_of_columns(columns)
    require_numbers(columns)
    order = by_code(codes)
    keep = np.zeros(codes.size, np.bool_)
    for start, end in _mark_small_groups(columns, codes, order, keep):
        members = order[start:end]
        keep[members[skyline_of_columns(take_points(columns, members))]] = True
    return np.flatnonzero(keep)


def by_code(codes: IntArray) -> IntArray:
    """Return the indices of n >= 1 rows in ascending order of their codes; rows of one code keep their order."""
    least = int(codes.min())
    if int(codes.max()) - least >= 1 << 32:
        return np.argsort(codes, kind="stable")
    return _by_key(codes, least)


@kernel
def _by_key(codes: IntArray, least: int) -> IntArray:
    packed = np.empty(codes.shape[0], np.uint64)
    for i in range(codes.shape[0]):
        packed[i] = np.uint64(codes[i] - least) << np.uint64(32) | np.uint64(i)
    packed = sorted_by_key(packed)
    order = np.empty(codes.shape[0], np.int64)
    for k in range(codes.shape[0]):
        order[k] = np.int64(packed[k] & ROW_MASK)
    return order


@kernel
def _mark_small_groups(columns: FloatArray, codes: IntArray, order: IntArray, keep: BoolArray) -> IntArray:
    """Set keep[i] for each row i on the skyline of a small group; return the spans of large groups in `order`, (g, 2).

    Rows of a group are neighbours in `order`.
    """
    n = order.shape[0]
    most = FEW if columns.shape[0] > 2 else SMALL
    few = room_for(most, columns.shape[0])
    large = np.empty((n // most + 1, 2), np.int64)
    larges = 0
    low = 0
    for high in range(1, n + 1):
        if high < n and codes[order[high]] == codes[order[low]]:
            continue
        if high - low == 1:
            keep[order[low]] = True
        elif high - low <= most:
            _mark_group(columns, order, (low, high), few, keep)
        else:
            large[larges, 0] = low
            large[larges, 1] = high
            larges += 1
        low = high
    return large[:larges]


@inlined
def _mark_group(columns: FloatArray, order: IntArray, span: tuple[int, int], few: PointBuffer, keep: BoolArray) -> None:
    """Set keep[i] for the skyline of the rows order[low:high], for which `few` has room.

    A row replaces the first row that it dominates.
    """
    found, stride, rows, point = few
    low, high = span
    found[: high - low + STEP] = np.nan
    size = 0
    for k in range(low, high):
        i = order[k]
        for j in range(columns.shape[0]):
            point[j] = columns[j, i]
        at = size
        dominated = False
        for first in range(0, size, STEP):
            dominators, gone = relations(found, stride, first, point)
            if dominators != NONE:
                dominated = True
                break
            while gone != NONE:
                lane = first + first_bit(gone)
                found[lane] = np.nan
                at = min(at, lane)
                gone &= gone - ONE
        if not dominated:
            for j in range(columns.shape[0]):
                found[j * stride + at] = point[j]
            rows[at] = i
            size = max(size, at + 1)
    for at in range(size):
        if found[at] == found[at]:
            keep[rows[at]] = True
