"""Z-order: an order in which no point is dominated by a later one, computed by one radix sort of 32-bit keys.

The key interleaves the top bits of a point's byte ranks: points near each other in all columns get near keys, and the
key is monotone: s <= p in every column implies key(s) <= key(p). Points with equal keys are sorted lexicographically,
which is monotone too (the first column that differs decides, and a dominating point is smaller there). So a point is
dominated by earlier points only, and equal points are neighbours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.byte_ranks import byte_ranks
from skypane.kernels.column_layout import points_of
from skypane.kernels.compiled import kernel
from skypane.types import BoolArray, FloatArray, IntArray

_KEY_BITS: Final = 32
_DIGIT_BITS: Final = 11
_DIGITS: Final = 3
ROW_MASK: Final = np.uint64(0xFFFF_FFFF)
"""The lower half of a packed key: the row's index."""


class Candidates(NamedTuple):
    """Points in the order of the visit: candidate k is points[order[k]], and ranks[k] are its byte ranks."""

    points: FloatArray  # (n, d)
    ranks: NDArray[np.uint8]  # (m, d)
    order: IntArray  # (m,)


class Ordered(NamedTuple):
    """All n points in Z-order, and flags of those that equal the one before."""

    candidates: Candidates
    repeats: BoolArray  # (n,)


@kernel
def _packed_keys(ranks: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return Z-order key << 32 | row for (n, d) ranks.

    The key interleaves the top min(8, 32 // d) bits of each of the first 32 columns.
    """
    n, d = ranks.shape
    d = min(d, _KEY_BITS)
    bits = min(8, _KEY_BITS // d)
    spread = np.zeros(256, np.uint64)  # a rank's top bits, d apart, in the upper half
    for rank in range(256):
        for b in range(bits):
            if (rank >> (7 - b)) & 1:
                spread[rank] |= np.uint64(1) << np.uint64(_KEY_BITS + (bits - 1 - b) * d)
    out = np.empty(n, np.uint64)
    for i in range(n):
        z = np.uint64(i)
        for j in range(d):
            z |= spread[ranks[i, j]] << np.uint64(d - 1 - j)
        out[i] = z
    return out


@kernel
def sorted_by_key(packed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return n >= 1 numbers sorted stably by their upper 32 bits (radix sort); overwrites, may return, the argument."""
    n = packed.shape[0]
    size = 1 << _DIGIT_BITS
    low = np.uint64(size - 1)
    starts = np.zeros((_DIGITS, size), np.int64)
    for x in packed:
        for digit in range(_DIGITS):
            starts[digit, (x >> np.uint64(32 + digit * _DIGIT_BITS)) & low] += 1
    spare = np.empty_like(packed)
    for digit in range(_DIGITS):
        shift = np.uint64(32 + digit * _DIGIT_BITS)
        start = starts[digit]
        if start[(packed[0] >> shift) & low] == n:
            continue  # all keys share this digit
        total = 0
        for value in range(size):
            count = start[value]
            start[value] = total
            total += count
        for x in packed:
            value = (x >> shift) & low
            spare[start[value]] = x
            start[value] += 1
        packed, spare = spare, packed
    return packed


@kernel
def _compare(points: FloatArray, a: int, b: int) -> int:
    """Return the lexicographic order of two points: -1 if a comes first, 1 if b does, 0 if they are equal."""
    for j in range(points.shape[1]):
        x = points[a, j]
        y = points[b, j]
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


@kernel
def _merge(points: FloatArray, run: IntArray, low: int, width: int, spare: IntArray) -> None:
    """Merge two sorted parts of a run: `width` rows from `low` on, and the next `width` rows, or fewer at its end."""
    middle = low + width
    high = min(middle + width, run.shape[0])
    if _compare(points, run[middle - 1], run[middle]) <= 0:
        return  # in order already, so that a run of equal points takes linear time
    for i in range(width):
        spare[i] = run[low + i]
    i = 0
    j = middle
    at = low
    while i < width:
        if j < high and _compare(points, spare[i], run[j]) > 0:
            run[at] = run[j]
            j += 1
        else:
            run[at] = spare[i]
            i += 1
        at += 1


@kernel
def _sort_run(points: FloatArray, run: IntArray, spare: IntArray) -> None:
    """Sort a run of rows by their points (bottom-up merge sort)."""
    width = 1
    while width < run.shape[0]:
        for low in range(0, run.shape[0] - width, 2 * width):
            _merge(points, run, low, width, spare)
        width *= 2


@kernel
def _settle_ties(points: FloatArray, packed: NDArray[np.uint64]) -> tuple[IntArray, BoolArray]:
    """Return the rows in the order of sorted packed keys, equal keys ordered by their points; and flags of repeats."""
    n = packed.shape[0]
    order = np.empty(n, np.int64)
    repeats = np.zeros(n, np.bool_)
    spare = np.empty(n, np.int64)  # pages that no run touches are never mapped
    low = 0
    for i in range(n):
        order[i] = np.int64(packed[i] & ROW_MASK)
    for i in range(1, n + 1):
        if i < n and packed[i] >> np.uint64(32) == packed[low] >> np.uint64(32):
            continue
        if i - low > 1:
            _sort_run(points, order[low:i], spare)
            for k in range(low + 1, i):
                repeats[k] = _compare(points, order[k - 1], order[k]) == 0
        low = i
    return order, repeats


@kernel
def _in_order(ranks: NDArray[np.uint8], order: IntArray) -> NDArray[np.uint8]:
    out = np.empty((order.shape[0], ranks.shape[1]), np.uint8)
    for k in range(order.shape[0]):
        for j in range(ranks.shape[1]):
            out[k, j] = ranks[order[k], j]
    return out


def in_z_order(columns: FloatArray) -> Ordered:
    """Return n >= 1 points, frozen (d, n) columns without NaN, in Z-order: dominating points precede dominated ones.

    repeats[k] is true if candidate k equals candidate k - 1; equal points are neighbours.
    """
    points = points_of(columns)
    ranks = byte_ranks(columns)
    order, repeats = _settle_ties(points, sorted_by_key(_packed_keys(ranks)))
    return Ordered(Candidates(points, _in_order(ranks, order), order), repeats)


def without_repeats(ordered: Ordered) -> Candidates:
    """Return the candidates that do not equal the one before."""
    points, ranks, order = ordered.candidates
    if not ordered.repeats.any():
        return ordered.candidates
    first = ~ordered.repeats
    return Candidates(points, ranks[first], order[first])
