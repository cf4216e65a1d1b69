"""A visiting order in which no row is dominated by a later one, found with one radix sort of 32-bit keys.

The key interleaves the top bits of a row's byte ranks (Z-order): rows near in all columns get near keys, and it is
monotone: s <= p in every column implies key(s) <= key(p). Rows with equal keys are put in lexicographic order of their
values, which is monotone too (the first column that differs decides, and a dominating row is smaller there). So a row is
dominated by earlier rows only, and equal rows are neighbours.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.types import BoolArray, FloatArray, IntArray

_KEY_BITS: Final = 32
_DIGIT_BITS: Final = 11
_DIGITS: Final = 3
ROW_MASK: Final = np.uint64(0xFFFF_FFFF)
"""The lower half of a packed key: the row's index."""


@kernel
def _packed_keys(ranks: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Z-order key << 32 | row, of (n, d) ranks: the top min(8, 32 // d) bits of each column, of the first 32 columns."""
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
    """Sort n >= 1 numbers by their upper 32 bits, stably (radix sort); overwrites its argument, and may return it."""
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
            continue  # all rows share this digit
        total = 0
        for value in range(size):
            held = start[value]
            start[value] = total
            total += held
        for x in packed:
            value = (x >> shift) & low
            spare[start[value]] = x
            start[value] += 1
        packed, spare = spare, packed
    return packed


@kernel
def _compare(rows: FloatArray, a: int, b: int) -> int:
    """Lexicographic order of two rows: negative if a comes first, 0 if they are equal."""
    for j in range(rows.shape[1]):
        x = rows[a, j]
        y = rows[b, j]
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


@kernel
def _merge(rows: FloatArray, order: IntArray, low: int, middle: int, high: int, spare: IntArray) -> None:
    """Merge the ordered order[low:middle] and order[middle:high]; spare holds the former meanwhile."""
    if _compare(rows, order[middle - 1], order[middle]) <= 0:
        return  # in order already: what makes a run of equal rows linear
    m = middle - low
    for i in range(m):
        spare[i] = order[low + i]
    i = 0
    j = middle
    at = low
    while i < m:
        if j < high and _compare(rows, spare[i], order[j]) > 0:
            order[at] = order[j]
            j += 1
        else:
            order[at] = spare[i]
            i += 1
        at += 1


@kernel
def _sort_run(rows: FloatArray, order: IntArray, low: int, high: int, spare: IntArray) -> None:
    """Bottom-up merge sort of order[low:high] by the rows' values."""
    width = 1
    while width < high - low:
        for start in range(low, high - width, 2 * width):
            _merge(rows, order, start, start + width, min(start + 2 * width, high), spare)
        width *= 2


@kernel
def _settle_ties(rows: FloatArray, packed: NDArray[np.uint64], order: IntArray, repeats: BoolArray) -> None:
    """Fill `order` from the sorted keys, each run of equal keys in order of its rows' values; note the repeated rows."""
    n = packed.shape[0]
    spare = np.empty(n, np.int64)  # memory that no run touches is never mapped
    low = 0
    for i in range(n):
        order[i] = np.int64(packed[i] & ROW_MASK)
        repeats[i] = False
    for i in range(1, n + 1):
        if i < n and packed[i] >> np.uint64(32) == packed[low] >> np.uint64(32):
            continue
        if i - low > 1:
            _sort_run(rows, order, low, i, spare)
            for k in range(low + 1, i):
                repeats[k] = _compare(rows, order[k - 1], order[k]) == 0
        low = i


def monotone_order(rows: FloatArray, ranks: NDArray[np.uint8]) -> tuple[IntArray, BoolArray]:
    """Order n >= 1 rows (n, d), given their byte ranks, so that a dominating row comes before all it dominates.

    Returns (order, repeats): repeats[k] says that row order[k] equals row order[k - 1]; equal rows are all neighbours.
    """
    order = np.empty(rows.shape[0], np.int64)
    repeats = np.empty(rows.shape[0], np.bool_)
    _settle_ties(rows, sorted_by_key(_packed_keys(ranks)), order, repeats)
    return order, repeats
