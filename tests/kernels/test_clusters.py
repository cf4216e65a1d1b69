"""The order of points in which those of a block are near one another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.kernels.blocks import BLOCK
from skypane.kernels.clusters import clustered


@given(st.lists(st.integers(1, 1_500), min_size=1, max_size=4), st.integers(0, 2 * BLOCK), st.integers(1, 3))
def test_every_point_is_there_once_and_in_order_of_time(sizes, begin, d):
    rng = np.random.default_rng(sum(sizes))
    times = np.repeat(np.arange(len(sizes)), sizes)
    order = clustered(rng.integers(0, 5, (len(times), d)).astype(np.uint8), times, begin)
    assert np.sort(order).tolist() == list(range(len(times)))
    assert (times[order] == times).all()


def test_a_cell_is_cut_where_a_block_ends_by_its_widest_column():
    ranks = np.array([[7, value % 250] for value in range(2 * BLOCK)], np.uint8)[
        np.random.default_rng(1).permutation(2 * BLOCK)
    ]
    begin = 5 * BLOCK + 100
    ordered = ranks[clustered(ranks, np.zeros(2 * BLOCK, np.int64), begin), 1].astype(int)
    first, last = BLOCK - 100, 2 * BLOCK - 100  # the blocks that are open before, and after
    assert ordered[:first].max() <= ordered[first:last].min()
    assert ordered[first:last].max() <= ordered[last:].min()


@pytest.mark.parametrize("d", [3, 12])
def test_bounds_of_blocks_are_tight(d):
    n = 16 * BLOCK
    ranks = np.random.default_rng(d).integers(0, 255, (n, d)).astype(np.uint8)
    blocks = ranks[clustered(ranks, np.zeros(n, np.int64), 0)].reshape(16, BLOCK, d).astype(int)
    widths = blocks.max(axis=1) - blocks.min(axis=1)
    halved = np.count_nonzero(widths < 140, axis=1)
    assert (halved >= min(d, 4)).all(), "sixteen blocks are four cuts, each of another column while there are some"
