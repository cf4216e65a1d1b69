"""The heights of a T-Gate's nodes: what its hash has to satisfy for a skip list to be as fast as it should be."""

from __future__ import annotations

import numpy as np
import pytest

from skypane_papers.multiway.kernels.tgate import SERIAL, hash_of_tuple


def heights(source: int, n: int) -> np.ndarray:
    """Return the number of trailing zero pairs of the hashes of an input's first n tuples, plus 1, at most 6."""
    words = np.array([hash_of_tuple(source << SERIAL | serial) for serial in range(n)])
    found: np.ndarray = 1 + np.sum([words % 4**level == 0 for level in range(1, 6)], axis=0)
    return found


@pytest.mark.parametrize("source", [0, 1, 2, 63, 999])
def test_each_further_level_has_a_quarter_of_the_nodes(source: int) -> None:
    found = heights(source, 50_000)
    for level in range(2, 6):
        assert np.count_nonzero(found >= level) == pytest.approx(50_000 / 4 ** (level - 1), rel=0.25)


@pytest.mark.parametrize("source", [0, 3])
def test_no_long_run_of_an_input_is_without_a_node_of_the_second_level(source: int) -> None:
    high = np.flatnonzero(heights(source, 50_000) >= 2)
    assert np.diff(high).max() <= 64


def test_inputs_do_not_have_their_high_nodes_at_the_same_serials() -> None:
    high = [heights(source, 20_000) >= 2 for source in (0, 1, 2)]
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        assert (high[one] & high[other]).mean() == pytest.approx(1 / 16, rel=0.3)
