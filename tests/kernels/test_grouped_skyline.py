from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.kernels.strategies import DISTRIBUTIONS, front, grid, odd, points, repeated

from skypane.kernels import skyline_indices, skyline_indices_by_group
from skypane.kernels.grouped_skyline import FEW
from skypane.kernels.thinning import SMALL


@given(points(), st.data())
def test_is_the_definition(p, data):
    groups = data.draw(st.lists(st.integers(-2, 2), min_size=len(p), max_size=len(p)))
    assert skyline_indices_by_group(p, np.array(groups, np.int64)).tolist() == oracles.skyline_indices_by_group(
        p, groups
    )


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("groups", [1, 3, 40, 3000])
def test_large_and_small_groups_together(draw, groups):
    rng = np.random.default_rng(groups)
    p = draw(3000, 4, rng)
    codes = rng.geometric(min(0.5, 2 / groups), 3000)
    assert_is_the_skyline_of_each_group(p, codes)


def assert_is_the_skyline_of_each_group(p, codes):
    expected = [np.flatnonzero(codes == g)[oracles.skyline_mask(p[codes == g])] for g in np.unique(codes)]
    np.testing.assert_array_equal(skyline_indices_by_group(p, codes), np.sort(np.concatenate(expected)))


@pytest.mark.long
@pytest.mark.parametrize("draw", [front, grid, odd, repeated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 9])
def test_groups_as_long_as_are_compared_all_with_all_and_longer_ones(draw, d):
    sizes = [1, 2, 15, 16, 17, SMALL, SMALL + 1, FEW - 1, FEW, FEW + 1]
    rng = np.random.default_rng(d)
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    assert_is_the_skyline_of_each_group(draw(len(codes), d, rng), codes)


def test_one_group_is_the_skyline():
    p = np.random.default_rng(1).random((5000, 5))
    np.testing.assert_array_equal(skyline_indices_by_group(p, np.full(5000, 9)), skyline_indices(p))


def test_each_row_its_own_group():
    p = np.random.default_rng(1).random((100_000, 3))
    assert len(skyline_indices_by_group(p, np.arange(100_000))) == 100_000


@pytest.mark.parametrize("far", [2**31, 2**32, 2**62])
def test_codes_may_lie_anywhere(far):
    p = np.random.default_rng(1).random((400, 3))
    codes = np.random.default_rng(2).integers(0, 5, 400)
    expected = skyline_indices_by_group(p, codes).tolist()
    assert skyline_indices_by_group(p, (codes - 2) * (far // 2)).tolist() == expected
    assert skyline_indices_by_group(p, np.array([-(2**63), 0, 2**63 - 1])[codes % 3]).tolist() == (
        skyline_indices_by_group(p, codes % 3).tolist()
    )


def test_no_rows():
    assert skyline_indices_by_group(np.empty((0, 2)), np.empty(0, np.int64)).tolist() == []


def test_nan_is_refused():
    with pytest.raises(ValueError, match="NaN in column 1 of row 2"):
        skyline_indices_by_group([[1.0, 1.0], [1.0, 1.0], [1.0, np.nan]], [0, 0, 1])


def test_codes_must_fit_the_points():
    with pytest.raises(ValueError, match=r"shape \(2,\), got shape \(3,\)"):
        skyline_indices_by_group(np.ones((2, 2)), np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="integer group codes, got dtype float64"):
        skyline_indices_by_group(np.ones((2, 2)), np.zeros(2))
