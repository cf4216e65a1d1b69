from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from skypane.kernels.blocks import (
    BLOCK,
    FINE,
    WORDS,
    Blocks,
    block_words,
    fill_block,
    find_words_around,
    find_words_beneath,
    find_words_beyond,
    grain,
    word_dominates,
    words_at_most,
    words_lower,
)
from skypane.kernels.simd import LANES
from skypane.kernels.z_order import Candidates


@njit
def below(bitmaps, at, ranks, k):
    return words_at_most(bitmaps, at, ranks, k), words_lower(bitmaps, at, ranks, k)


@njit
def dominates(blocks, candidates, k):
    words = words_at_most(blocks.bitmaps, block_words(candidates.ranks.shape[1], FINE), candidates.ranks, k)
    return word_dominates(blocks, 1, words, candidates, k)


@njit
def find(lanes, near, b, ranks, k, bitmaps, present):
    around = find_words_around(lanes, near[0], 64, bitmaps, b, ranks, k, present)
    beneath = find_words_beneath(lanes, near[1], 64, bitmaps, b, ranks, k, present)
    beyond = find_words_beyond(lanes, near[2], 64, bitmaps, b, ranks, k, present)
    return around, beneath, beyond


def words_with(flags):
    return sum(1 << w for w in range(WORDS) if flags[w * LANES : (w + 1) * LANES].any())


def filled(member_ranks, shift):
    """Return the bitmaps of two blocks, of which the second has these points."""
    d = member_ranks.shape[1]
    tiles = np.ascontiguousarray(member_ranks.reshape(WORDS, LANES, d).transpose(0, 2, 1)).ravel()
    bitmaps = np.full(2 * block_words(d, shift), 0xDEADBEEF, np.uint64)
    fill_block(bitmaps, block_words(d, shift), tiles, d, shift)
    return bitmaps


@pytest.fixture(params=[1, 2, 3, 8])
def block(request):
    """A block of 512 random points, second of two; (d, ranks of its points, bitmaps, flat index)."""
    d = request.param
    member_ranks = np.random.default_rng(d).integers(0, 255, (BLOCK, d)).astype(np.uint8)
    return d, member_ranks, filled(member_ranks, FINE), block_words(d, FINE)


def test_levels_exclude_only_rows_that_cannot_dominate(block):
    d, member_ranks, bitmaps, at = block
    ranks = np.random.default_rng(9).integers(0, 255, (300, d)).astype(np.uint8)
    ranks[0], ranks[1] = 0, 254
    levels, mine = member_ranks >> 2, ranks >> 2
    for k in range(len(ranks)):
        same = (levels <= mine[k]).all(axis=1)
        lower = (levels < mine[k]).all(axis=1)
        assert below(bitmaps, at, ranks, k) == (words_with(same), words_with(lower))


def test_values_decide_among_points_of_equal_level(block):
    _, member_ranks, bitmaps, _ = block
    values = member_ranks.astype(float)
    dominated = values + 0.5  # each by its twin
    shifted = values.copy()
    shifted[:, 0] -= 0.5  # by no twin, perhaps by another
    points = np.concatenate([values, dominated, shifted])
    members = np.tile(np.arange(BLOCK), 2)
    blocks = Blocks(bitmaps, np.empty(0, np.uint8), members)
    candidates = Candidates(points, np.concatenate([member_ranks] * 3), np.arange(3 * BLOCK))
    for k in range(0, 3 * BLOCK, 7):
        expected = ((values <= points[k]).all(axis=1) & (values < points[k]).any(axis=1)).any()
        assert dominates(blocks, candidates, k) == expected


@pytest.mark.parametrize("d", [1, 3, 8, 9, 12])
def test_words_with_points_below_and_above_are_found_for_each_lane(d):
    rng = np.random.default_rng(d)
    shift = grain(d)
    member_ranks = rng.integers(0, 255, (BLOCK, d)).astype(np.uint8)
    bitmaps = filled(member_ranks, shift)
    present = rng.integers(0, 2**63, 2 * WORDS, np.uint64)
    stored = np.unpackbits(present[WORDS:].view(np.uint8), bitorder="little").astype(bool)
    ranks = rng.integers(0, 255, (10 + LANES, d)).astype(np.uint8)
    ranks[10], ranks[11] = 0, 254
    lanes = np.uint64(0x8F0F_0000_FFFF_0003)
    near = np.full((3, 2 * LANES), 99, np.uint64)
    looking = find(lanes, near, 1, ranks, 10, bitmaps, present)
    levels, mine = member_ranks >> shift, ranks >> shift
    for lane in range(LANES):
        below = words_with((levels <= mine[10 + lane]).all(axis=1) & stored)
        above = words_with((levels >= mine[10 + lane]).all(axis=1) & stored) << WORDS
        for kind, words in enumerate((below | above, below, above)):
            given = int(lanes) >> lane & 1
            assert near[kind, LANES + lane] == (words if given else 99)
            assert int(looking[kind]) >> lane & 1 == (given and words != 0)
