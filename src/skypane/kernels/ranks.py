"""Byte ranks: each column mapped to 0..254 by a monotone map, so that one vector compare covers 64 rows.

x <= y in a column implies rank(x) <= rank(y); so where no rank forbids dominance, and only there, values are compared.
The map is equi-depth over a sample: exactness needs monotony alone, speed needs even depth. Infinities are ordinary.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skypane.types import FloatArray

EMPTY: Final = 255
"""Rank of a lane that holds no row: above every rank, so it is <= none."""

_SAMPLE: Final = 512
_CUTS: Final = np.arange(1, 255)


@njit(cache=True, nogil=True, inline="always")
def sample_position(k: int, stride: int) -> int:
    """Row of the k-th stratum of `stride` rows to sample: a fixed pseudo-random one.

    Always taking the first would see one source only, where sources take turns in the input.
    """
    h = np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return k * stride + np.int64((h & np.uint64(0x7FFFFFFF)) % np.uint64(stride))


@njit(cache=True, nogil=True)
def sample_columns(columns: FloatArray, m: int) -> FloatArray:
    """Take m of n rows spread over the input: (d, n) -> (d, m); 1 <= m <= n."""
    d, n = columns.shape
    stride = n // m
    out = np.empty((d, m))
    for k in range(m):
        i = sample_position(k, stride)
        for j in range(d):
            out[j, k] = columns[j, i]
    return out


@njit(cache=True, nogil=True)
def _ranks(columns: FloatArray, cuts: FloatArray, width: int) -> NDArray[np.uint8]:
    """rank = number of cuts <= x, by a branch-free binary search; columns from d to width are 0."""
    d, n = columns.shape
    out = np.zeros((n, width), np.uint8)
    for j in range(d):
        cut = cuts[j]
        for i in range(n):
            x = columns[j, i]
            k = 128 * (cut[127] <= x)
            k += 64 * (cut[k + 63] <= x)
            k += 32 * (cut[k + 31] <= x)
            k += 16 * (cut[k + 15] <= x)
            k += 8 * (cut[k + 7] <= x)
            k += 4 * (cut[k + 3] <= x)
            k += 2 * (cut[k + 1] <= x)
            k += cut[k] <= x
            out[i, j] = min(k, 254)  # +inf is also >= the padding of the cuts
    return out


def byte_ranks(columns: FloatArray) -> NDArray[np.uint8]:
    """Ranks of (d, n) columns, n >= 1, as (n, d) rows; one more column of zeros if d is odd, so that columns pair up."""
    d, n = columns.shape
    m = min(n, _SAMPLE)
    ordered = np.sort(sample_columns(columns, m), axis=1)
    cuts = np.full((d, 256), np.inf)
    cuts[:, :254] = ordered[:, (_CUTS * m) // 255]
    return _ranks(columns, cuts, d + (d & 1))
