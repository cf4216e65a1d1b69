"""Strong points: a few points of a sample that together dominate a large share of it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.byte_ranks import sample_columns
from skypane.kernels.compiled import kernel
from skypane.kernels.simd import ALL, count_bits, floats_ge, floats_gt
from skypane.types import FloatArray, IntArray

_SMALLEST_SAMPLE: Final = 512  # or 128 per column, with fewer than four columns
_LARGEST_SAMPLE: Final = 2048
_CANDIDATES: Final = 64  # sample points with the best scores
_JUDGES: Final = 256  # sample points on which candidates are compared
_MOST: Final = 32  # largest number of strong points
_LEAST_GAIN: Final = 0.006  # share of the sample that one more strong point must remove
_STEP: Final = 16  # sample points per compare


class StrongPoints(NamedTuple):
    """Strong points, the `lead` column in which they must be strictly better, and the share of the sample removed."""

    points: FloatArray  # (k, d)
    lead: int
    share: float


@kernel
def _scores(sample: FloatArray) -> FloatArray:
    """Return each point's positions in the finite ranges of columns, summed up; infinities count as a range's ends."""
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
            scale = 1.0 / (0.5 * high - 0.5 * low)  # halved, since the range itself may overflow
            for i in range(m):
                out[i] += (0.5 * min(max(sample[j, i], low), high) - 0.5 * low) * scale
    return out


@kernel
def _lead(sample: FloatArray) -> int:
    """Return the column with the fewest ties between neighbouring sample points."""
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
def _least(scores: FloatArray, count: int) -> IntArray:
    """Return the indices of the `count` least scores, ascending: insertion into a short list that few scores enter."""
    places = np.empty(count, np.int64)
    size = 0
    for i in range(scores.shape[0]):
        if size == count and scores[i] >= scores[places[size - 1]]:
            continue
        at = min(size, count - 1)
        while at > 0 and scores[places[at - 1]] > scores[i]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = i
        size = min(size + 1, count)
    return places[:size]


@kernel
def _coverage(sample: FloatArray, candidates: IntArray, lead: int, words: int) -> NDArray[np.uint64]:
    """Return masks: bit b of [a, w] means that candidate a <= sample point 64 * w + b in all columns, < in the lead."""
    d, m = sample.shape
    flat = sample.ravel()
    out = np.zeros((candidates.shape[0], words), np.uint64)
    for a in range(candidates.shape[0]):
        c = candidates[a]
        for block in range(words * 4):
            at = block * _STEP
            covered = floats_gt(flat, lead * m + at, sample[lead, c])
            for j in range(d):
                covered &= floats_ge(flat, j * m + at, sample[j, c])
            out[a, block >> 2] |= np.uint64(covered) << np.uint64((block & 3) * _STEP)
    return out


@kernel
def _choose(sample: FloatArray, candidates: IntArray, lead: int) -> StrongPoints:
    """Return the strong points: a greedy cover of the judges by the candidates, which are indices into the sample."""
    d, m = sample.shape
    judges = min(m, _JUDGES)
    words = judges >> 6
    covers = _coverage(sample, candidates, lead, words)
    left = np.full(words, ALL)
    strong = np.empty((_MOST, d))
    size = 0
    covered = 0
    while size < _MOST:
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
            strong[size, j] = sample[j, candidates[best]]
        for w in range(words):
            left[w] &= ~covers[best, w]
        size += 1
        covered += most
    return StrongPoints(strong[:size], lead, covered / judges)


@kernel
def strong_points(columns: FloatArray) -> StrongPoints:
    """Return strong points of (d, n) columns, chosen from a sample of them; n >= 512."""
    d, n = columns.shape
    least = min(_SMALLEST_SAMPLE, 128 * d)
    sample = sample_columns(columns, min(_LARGEST_SAMPLE, max(least, n >> 5 & ~63)))
    return _choose(sample, _least(_scores(sample), _CANDIDATES), _lead(sample))
