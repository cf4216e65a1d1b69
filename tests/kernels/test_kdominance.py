from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.kernels.strategies import DISTRIBUTIONS, points

from skypane.kernels import dominance_factors, k_dominant_indices, skyline_indices, top_delta_indices

few_points = points(max_rows=20, max_columns=5)


def factors_by_columns(p):
    """The largest k such that some row k-dominates each: k columns as good, of which one is better."""
    as_good = (p[:, None] <= p[None]).sum(axis=2)
    better = (p[:, None] < p[None]).any(axis=2)
    return np.where(better, as_good, 0).max(axis=0)


@given(few_points.filter(len))
def test_factors_by_columns_are_the_definition(p):
    assert factors_by_columns(p).tolist() == oracles.dominance_factors(p)


@given(few_points)
def test_factors_are_the_definition(p):
    best = p[skyline_indices(p)]
    assert dominance_factors(best).tolist() == oracles.dominance_factors(best)


@given(few_points, st.integers(1, 5))
def test_k_dominant_rows_are_the_definition_over_all_points(p, k):
    k = min(k, p.shape[1])
    assert k_dominant_indices(p, k).tolist() == oracles.k_dominant_indices(p, k)


@given(few_points, st.integers(0, 12))
def test_top_delta_is_the_definition(p, delta):
    rows, k_star = top_delta_indices(p, delta)
    assert (rows.tolist(), k_star) == oracles.top_delta_indices(p, delta)


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 12])
def test_hundreds_of_rows(draw, d):
    p = draw(900, d, np.random.default_rng(d))
    skyline = skyline_indices(p)
    factors = factors_by_columns(p[skyline])
    np.testing.assert_array_equal(dominance_factors(p[skyline]), factors)
    for k in range(1, d + 1):
        np.testing.assert_array_equal(k_dominant_indices(p, k), skyline[factors < k])
    for delta in (0, 1, 10, 100, 2000):
        rows, k_star = top_delta_indices(p, delta)
        enough = [k for k in range(1, d + 1) if (factors < k).sum() > delta]
        assert k_star == min([*enough, d])
        chosen = np.flatnonzero(factors < k_star)
        np.testing.assert_array_equal(rows, skyline[chosen[np.argsort(factors[chosen], kind="stable")]])


def test_k_dominance_is_cyclic():
    """Each row 2-dominates the next, so DSP(2) is empty although all three are skyline rows."""
    p = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]])
    assert dominance_factors(p).tolist() == [2, 2, 2]
    assert k_dominant_indices(p, 2).tolist() == []
    assert k_dominant_indices(p, 3).tolist() == [0, 1, 2]


def test_equal_rows_do_not_dominate_each_other_and_count_each():
    p = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
    assert dominance_factors(p).tolist() == [1, 1, 1]
    assert dominance_factors(p[:2]).tolist() == [0, 0]
    rows, k_star = top_delta_indices(p[:2], 1)
    assert (rows.tolist(), k_star) == ([0, 1], 1)


@given(few_points, st.integers(0, 5))
def test_a_promise_of_skyline_rows_changes_nothing(p, delta):
    best = p[skyline_indices(p)]
    assert top_delta_indices(best, delta, only_skyline=True)[0].tolist() == top_delta_indices(best, delta)[0].tolist()
    assert k_dominant_indices(best, 1, only_skyline=True).tolist() == k_dominant_indices(best, 1).tolist()


def test_more_rows_than_16_bits_count():
    """70,000 rows of a line: each <= every later one in one column, and >= in the other."""
    x = np.arange(70_000.0)
    p = np.asfortranarray(np.column_stack([x, -x]))
    assert set(dominance_factors(p).tolist()) == {1}
    rows, k_star = top_delta_indices(p, 5, only_skyline=True)
    assert (len(rows), k_star) == (70_000, 2)


def test_no_rows():
    assert dominance_factors(np.empty((0, 3))).tolist() == []
    assert k_dominant_indices(np.empty((0, 3)), 2).tolist() == []
    rows, k_star = top_delta_indices(np.empty((0, 3)), 1)
    assert (rows.tolist(), k_star) == ([], 3)


@pytest.mark.parametrize("k", [0, 4])
def test_k_outside_1_to_d_is_refused(k):
    with pytest.raises(ValueError, match=rf"need 1 <= k <= d, got k={k}, d=3"):
        k_dominant_indices(np.ones((2, 3)), k)


def test_negative_delta_and_nan_are_refused():
    with pytest.raises(ValueError, match="need delta >= 0, got delta=-1"):
        top_delta_indices(np.ones((2, 3)), -1)
    with pytest.raises(ValueError, match="NaN in column 0 of row 1"):
        dominance_factors([[1.0, 2.0], [np.nan, 1.0]])


def test_inputs_stay_as_they_were():
    p = np.asfortranarray(np.random.default_rng(3).random((500, 4)))
    before = p.copy()
    p.flags.writeable = False
    top_delta_indices(p, 10)
    k_dominant_indices(p, 3)
    dominance_factors(p[skyline_indices(p)])
    np.testing.assert_array_equal(p, before)
