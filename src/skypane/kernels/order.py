"""A visiting order in which no row is dominated by a later one, found with one sort of 64-bit keys.

The key interleaves the top bits of a row's byte ranks (Z-order): rows near in all columns get near keys, so tiles of
consecutive rows are tight, and it is monotone: s <= p in every column implies key(s) <= key(p). Rows with equal keys
are put in lexicographic order of their values, which is monotone too (the first column that differs decides, and a
dominating row is smaller there). So a row can be dominated by earlier rows only, and equal rows are neighbours.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skypane.types import FloatArray, IntArray


@njit(cache=True, nogil=True)
def _keys(ranks: NDArray[np.uint8], d: int) -> NDArray[np.uint64]:
    """Z-order keys of (n, >=d) ranks: min(8, 64 // d) top bits of each column; of the first 64 columns if d > 64."""
    n = ranks.shape[0]
    d = min(d, 64)
    bits = min(8, 64 // d)
    spread = np.zeros(256, np.uint64)  # a rank's top bits, d apart
    for rank in range(256):
        z = np.uint64(0)
        for b in range(bits):
            if (rank >> (7 - b)) & 1:
                z |= np.uint64(1) << np.uint64((bits - 1 - b) * d)
        spread[rank] = z
    out = np.empty(n, np.uint64)
    for i in range(n):
        z = np.uint64(0)
        for j in range(d):
            z |= spread[ranks[i, j]] << np.uint64(d - 1 - j)
        out[i] = z
    return out


@njit(cache=True, nogil=True)
def _after(rows: FloatArray, a: int, b: int) -> bool:
    """Whether row a comes after row b in lexicographic order."""
    for j in range(rows.shape[1]):
        x = rows[a, j]
        y = rows[b, j]
        if x != y:
            return x > y
    return False


@njit(cache=True, nogil=True)
def _merge(rows: FloatArray, order: IntArray, low: int, middle: int, high: int, spare: IntArray) -> None:
    """Merge the ordered order[low:middle] and order[middle:high]; spare holds the former meanwhile."""
    if not _after(rows, order[middle - 1], order[middle]):
        return  # already in order: what makes a run of equal rows linear
    m = middle - low
    spare[:m] = order[low:middle]
    i = 0
    j = middle
    at = low
    while i < m:
        if j < high and _after(rows, spare[i], order[j]):
            order[at] = order[j]
            j += 1
        else:
            order[at] = spare[i]
            i += 1
        at += 1


@njit(cache=True, nogil=True)
def _sort_run(rows: FloatArray, order: IntArray, low: int, high: int, spare: IntArray) -> None:
    """Bottom-up merge sort of order[low:high] by the rows' values."""
    width = 1
    while width < high - low:
        for start in range(low, high - width, 2 * width):
            _merge(rows, order, start, start + width, min(start + 2 * width, high), spare)
        width *= 2


@njit(cache=True, nogil=True)
def _order_ties(rows: FloatArray, keys: NDArray[np.uint64], order: IntArray) -> None:
    """Put each run of equal keys in `order` (by key) into lexicographic order, in place."""
    n = order.shape[0]
    spare = np.empty(n, np.int64)  # pages that no run touches cost nothing
    low = 0
    for i in range(1, n + 1):
        if i == n or keys[order[i]] != keys[order[low]]:
            if i - low > 1:
                _sort_run(rows, order, low, i, spare)
            low = i


def monotone_order(rows: FloatArray, ranks: NDArray[np.uint8]) -> IntArray:
    """Order of (n, d) rows, with their byte ranks: dominating before dominated, equal rows side by side."""
    keys = _keys(ranks, rows.shape[1])
    order = np.argsort(keys)
    _order_ties(rows, keys, order)
    return order
