from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.strategies import DISTRIBUTIONS
from tests.oracles import skyline_mask

from skypane.kernels.column_layout import columns_of
from skypane.kernels.strong_points import StrongPoints, strong_points
from skypane.kernels.thinning import SMALL, has_nan, survivors, thinned


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("n", [1024, 5003])
def test_only_rows_dominated_by_a_strong_point_go(draw, d, n):
    p = draw(n, d, np.random.default_rng(n))
    chosen = strong_points(columns_of(p))
    left, nan = survivors(columns_of(p), chosen)
    strong, lead, share = chosen
    assert not nan
    assert 0 <= share <= 1
    gone = np.setdiff1d(np.arange(n), left)
    assert all(((strong <= p[i]).all(axis=1) & (strong[:, lead] < p[i, lead])).any() for i in gone)
    stay = p[left]
    assert not any(((s <= stay).all(axis=1) & (s[lead] < stay[:, lead])).any() for s in strong)


def test_on_correlated_criteria_few_rows_are_left():
    p = np.random.default_rng(0).random((50_000, 1)) + 0.01 * np.random.default_rng(1).random((50_000, 5))
    strong = strong_points(columns_of(p))
    assert strong.share > 0.9
    assert len(survivors(columns_of(p), strong)[0]) < 5_000


def test_a_column_of_two_values_does_not_lead():
    p = np.random.default_rng(0).random((5000, 4))
    p[:, 0] = p[:, 0] > 0.5
    _, lead, share = strong_points(columns_of(p))
    assert lead != 0
    assert share > 0.3


@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_nan_is_found(n):
    for row in {0, n // 2, n - 1}:
        p = np.zeros((n, 3))
        assert not has_nan(columns_of(p))
        p[row, 1] = np.nan
        assert has_nan(columns_of(p))
        assert survivors(columns_of(p), StrongPoints(np.zeros((1, 3)), 0, 0.5))[1]


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [20, 192, 193, 700, 3000])
def test_thinning_keeps_the_skyline_and_reports_when_nothing_else_is_left(draw, n):
    p = draw(n, 3, np.random.default_rng(n))
    rows, columns, done, nan = thinned(columns_of(p))
    skyline = np.flatnonzero(skyline_mask(p))
    assert not nan
    assert done >= (n <= SMALL)
    if done:
        assert rows.tolist() == skyline.tolist()
    else:
        np.testing.assert_array_equal(columns.T, p[rows])
        assert set(skyline) <= set(rows.tolist())


def test_a_short_skyline_of_many_points_is_found_by_nested_loops():
    rng = np.random.default_rng(0)
    p = rng.random((900, 3))
    p[rng.integers(0, 900, 5)] = 0.0  # the best, several times
    rows, _, done, _ = thinned(columns_of(p))
    assert done
    assert rows.tolist() == np.flatnonzero(skyline_mask(p)).tolist()
