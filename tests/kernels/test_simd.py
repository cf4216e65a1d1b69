from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from skypane.kernels import simd

LANES = simd.LANES


@njit
def compared(tiles, at, q):
    return simd.bytes_le(tiles, at, q)


@njit
def floats(values, at, x):
    return simd.floats_gt(values, at, x), simd.floats_ge(values, at, x)


@njit
def tile(tiles, at, ranks, k, m):
    return (
        simd.lanes_le(tiles, at, ranks, k),
        simd.lanes_le_in_more_than(tiles, at, ranks, k, m),
        simd.most_columns_lt(tiles, at, ranks, k, m),
    )


@njit
def bits(mask):
    return simd.first_bit(mask), simd.count_bits(mask)


def mask_of(flags):
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def test_bytes_le_compares_as_unsigned_from_any_offset():
    tiles = np.random.default_rng(0).integers(0, 256, 200).astype(np.uint8)
    for q in (0, 1, 127, 128, 254, 255):
        assert compared(tiles, 3, np.uint8(q)) == mask_of(tiles[3 : 3 + LANES] <= q)


def test_floats_compare_false_with_nan_and_right_with_infinities():
    values = np.array([np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan] * 3)
    for x in (-np.inf, -0.0, 0.5, np.inf, np.nan):
        some = values[2:18]
        assert floats(values, 2, x) == (mask_of(some > x), mask_of(some >= x))


@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 254])
def test_tiles_count_columns_per_lane(d):
    rng = np.random.default_rng(d)
    cells = rng.integers(0, 4, (3, d, LANES)).astype(np.uint8)
    ranks = rng.integers(0, 4, (5, d)).astype(np.uint8)
    for t, k in [(0, 0), (1, 4), (2, 2)]:
        le = (cells[t] <= ranks[k][:, None]).sum(axis=0)
        lt = (cells[t] < ranks[k][:, None]).sum(axis=0)
        for m in {0, d // 2, d - 1}:
            expected = (mask_of(le == d), mask_of(le > m), lt.max())
            assert tile(cells.ravel(), t * d * LANES, ranks, k, m) == expected


@pytest.mark.parametrize("mask", [1, 2, 3, 1 << 63, (1 << 64) - 1, 0b1011000])
def test_bits(mask):
    assert bits(np.uint64(mask)) == ((mask & -mask).bit_length() - 1, mask.bit_count())
