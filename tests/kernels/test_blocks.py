from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from skypane.kernels.blocks import BLOCK, LOWER, SAME, WORDS, block_words, fill_block, rows_below, values_dominate
from skypane.kernels.simd import LANES


@njit
def below(blocks, at, ranks, k, d):
    return rows_below(blocks, at, ranks, k, d, SAME), rows_below(blocks, at, ranks, k, d, LOWER)


def words_with(flags):
    return sum(1 << w for w in range(WORDS) if flags[w * LANES : (w + 1) * LANES].any())


@pytest.fixture(params=[1, 2, 3, 8])
def block(request):
    """A block of 512 random rows, second of two in its array; (d, ranks of its rows, array, flat index)."""
    d = request.param
    member_ranks = np.random.default_rng(d).integers(0, 255, (BLOCK, d)).astype(np.uint8)
    tiles = np.ascontiguousarray(member_ranks.reshape(WORDS, LANES, d).transpose(0, 2, 1)).ravel()
    blocks = np.full(2 * block_words(d), 0xDEADBEEF, np.uint64)
    fill_block(blocks, block_words(d), tiles, d)
    return d, member_ranks, blocks, block_words(d)


def test_levels_exclude_only_rows_that_cannot_dominate(block):
    d, member_ranks, blocks, at = block
    ranks = np.random.default_rng(9).integers(0, 255, (300, d)).astype(np.uint8)
    ranks[0], ranks[1] = 0, 254
    levels, mine = member_ranks >> 2, ranks >> 2
    for k in range(len(ranks)):
        same = (levels <= mine[k]).all(axis=1)
        lower = (levels < mine[k]).all(axis=1)
        assert below(blocks, at, ranks, k, d) == (words_with(same), words_with(lower))


def test_values_decide_among_rows_of_equal_level(block):
    d, member_ranks, blocks, at = block
    rows = np.concatenate([member_ranks, member_ranks, member_ranks]).astype(float)
    rows[BLOCK : 2 * BLOCK] += 0.5  # dominated by its twin
    rows[2 * BLOCK :, 0] -= 0.5  # dominated by no twin, perhaps by another
    ranks = np.concatenate([member_ranks] * 3)
    order, members = np.arange(3 * BLOCK), np.arange(BLOCK)
    for k in range(0, 3 * BLOCK, 7):
        words = np.uint64(below(blocks, at, ranks, k, d)[0])
        others = rows[:BLOCK]
        expected = ((others <= rows[k]).all(axis=1) & (others < rows[k]).any(axis=1)).any()
        assert values_dominate(blocks, at, words, rows, ranks, order, k, members, 0) == expected
