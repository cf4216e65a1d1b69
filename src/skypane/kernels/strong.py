"""Strong points: a few rows of a sample that dominate much of it, and a columnar filter that removes what they dominate.

On independent or correlated criteria this removes nearly everything before any sorting, at a few compares per row, and
it reads columns as they come from Arrow. It also sees every value, so it looks for NaN on the way.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.kernels.ranks import sample_columns
from skypane.kernels.simd import ALL, NONE, ONE, count_bits, first_bit, floats_ge, floats_gt
from skypane.types import FloatArray, IntArray

_CANDIDATES: Final = 64  # sample rows of the best sums
_JUDGES: Final = 256  # sample rows on which candidates are compared
_MOST: Final = 32  # strong points to find at most
_LEAST_GAIN: Final = 0.006  # share of the sample that one more strong point must remove
_BLOCK: Final = 16  # rows per step of the filter


@kernel
def _scores(sample: FloatArray) -> FloatArray:
    """Sum over columns of a row's place in its column's finite range; infinities count as the range's ends."""
    d, m = sample.shape
    out = np.zeros(m)
    for j in range(d):
        low = np.inf
        high = -np.inf
        for i in range(m):
            x = sample[j, i]
            if abs(x) < np.inf:
                low = min(low, x)
                high = max(high, x)
        if low < high:
            scale = 1.0 / (0.5 * high - 0.5 * low)  # halves: the range itself may overflow
            for i in range(m):
                out[i] += (0.5 * min(max(sample[j, i], low), high) - 0.5 * low) * scale
    return out


@kernel
def _lead(sample: FloatArray) -> int:
    """The column with the fewest ties between neighbouring sample rows."""
    d, m = sample.shape
    lead = 0
    fewest = m
    for j in range(d):
        ties = 0
        for i in range(1, m):
            ties += sample[j, i] == sample[j, i - 1]
        if ties < fewest:
            fewest = ties
            lead = j
    return lead


@kernel
def _coverage(sample: FloatArray, candidates: IntArray, lead: int, words: int) -> NDArray[np.uint64]:
    """Bit b of out[a, w]: candidate a is <= sample row 64 * w + b in all columns and < in the lead column."""
    d, m = sample.shape
    flat = sample.ravel()
    out = np.zeros((candidates.shape[0], words), np.uint64)
    for a in range(candidates.shape[0]):
        c = candidates[a]
        for block in range(words * 4):
            at = block * _BLOCK
            covered = floats_gt(flat, lead * m + at, sample[lead, c])
            for j in range(d):
                covered &= floats_ge(flat, j * m + at, sample[j, c])
            out[a, block >> 2] |= np.uint64(covered) << np.uint64((block & 3) * _BLOCK)
    return out


@kernel
def _choose(sample: FloatArray, candidates: IntArray, lead: int) -> tuple[FloatArray, float]:
    """Greedy cover of the judges by candidates, rows of the sample: the strong points (k, d), and the share covered."""
    d, m = sample.shape
    judges = min(m, _JUDGES)
    words = judges >> 6
    covers = _coverage(sample, candidates, lead, words)
    left = np.full(words, ALL)
    strong = np.empty((_MOST, d))
    found = 0
    covered = 0
    while found < _MOST:
        best = -1
        most = 0
        for a in range(candidates.shape[0]):
            gain = 0
            for w in range(words):
                gain += count_bits(covers[a, w] & left[w])
            if gain > most:
                most = gain
                best = a
        if most <= _LEAST_GAIN * judges:
            break
        for j in range(d):
            strong[found, j] = sample[j, candidates[best]]
        for w in range(words):
            left[w] &= ~covers[best, w]
        found += 1
        covered += most
    return strong[:found], covered / judges


def strong_points(columns: FloatArray) -> tuple[FloatArray, int, float]:
    """Return strong points (k, d), their lead column, and the share of a sample that they dominate; n >= 256."""
    n = columns.shape[1]
    sample = sample_columns(columns, min(2048, max(512, n >> 5 & ~63)))
    lead = _lead(sample)
    strong, share = _choose(sample, np.argpartition(_scores(sample), _CANDIDATES)[:_CANDIDATES], lead)
    return strong, lead, share


@kernel
def _row_survives(columns: FloatArray, i: int, strong: FloatArray, lead: int) -> bool:
    for k in range(strong.shape[0]):
        if columns[lead, i] > strong[k, lead]:
            below = True
            for j in range(columns.shape[0]):
                if columns[j, i] < strong[k, j]:
                    below = False
                    break
            if below:
                return False
    return True


@kernel
def survivors(columns: FloatArray, strong: FloatArray, lead: int) -> tuple[IntArray, bool]:
    """Rows of (d, n) columns, d >= 2, that no strong point dominates while being < in the lead column; and whether a NaN was seen.

    Asking for < in one fixed column spares a second compare of every column and keeps the strong points themselves; it
    only ever keeps more. A NaN compares false, so a row that holds one may go or stay: the caller must look at the flag.
    """
    d, n = columns.shape
    flat = columns.ravel()
    others = np.array([j for j in range(d) if j != lead])
    out = np.empty(n, np.int64)
    size = 0
    blocked = n & ~(_BLOCK - 1)
    everything = np.uint16(0xFFFF)
    ordered = everything
    for i in range(0, blocked, _BLOCK):
        for j in range(d):
            ordered &= floats_ge(flat, j * n + i, -np.inf)
        left = everything
        for k in range(strong.shape[0]):
            j = others[0]
            hit = floats_gt(flat, lead * n + i, strong[k, lead]) & floats_ge(flat, j * n + i, strong[k, j])
            at = 1
            while at < d - 1 and hit != 0:
                j = others[at]
                hit &= floats_ge(flat, j * n + i, strong[k, j])
                at += 1
            left &= ~hit
            if left == 0:
                break
        rest = np.uint64(left)
        while rest != NONE:
            out[size] = i + first_bit(rest)
            size += 1
            rest &= rest - ONE
    has_nan = ordered != everything
    for i in range(blocked, n):
        for j in range(d):
            has_nan |= columns[j, i] != columns[j, i]
        if _row_survives(columns, i, strong, lead):
            out[size] = i
            size += 1
    return out[:size], has_nan


@kernel
def has_nan(columns: FloatArray) -> bool:
    """Whether a value of the (d, n) columns is NaN."""
    flat = columns.ravel()
    blocked = flat.shape[0] & ~(_BLOCK - 1)
    for i in range(0, blocked, _BLOCK):
        if floats_ge(flat, i, -np.inf) != np.uint16(0xFFFF):
            return True
    for i in range(blocked, flat.shape[0]):
        if flat[i] != flat[i]:
            return True
    return False
