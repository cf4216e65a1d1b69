from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.kernels.strategies import DISTRIBUTIONS, points
from tests.oracles import dominates, dominators

from skypane.kernels.byte_ranks import byte_ranks
from skypane.kernels.column_layout import columns_of
from skypane.kernels.z_order import in_z_order, without_repeats


def ordered(p):
    candidates, repeats = in_z_order(columns_of(p))
    np.testing.assert_array_equal(candidates.points, p)
    return p[candidates.order], candidates.order, repeats


@given(points().filter(len))
def test_no_row_is_dominated_by_a_later_one(p):
    rows, order, _ = ordered(p)
    assert sorted(order) == list(range(len(p)))
    assert not any(dominates(rows[b], rows[a]) for b in range(len(rows)) for a in range(b))


@given(points().filter(len))
def test_equal_rows_are_neighbours(p):
    rows, _, repeats = ordered(p)
    assert repeats.tolist() == [k > 0 and (rows[k] == rows[k - 1]).all() for k in range(len(rows))]
    assert len(np.unique(p + 0.0, axis=0)) == np.count_nonzero(~repeats)  # + 0.0 makes -0.0 a plain zero


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 12, 33])
def test_thousands_of_rows(draw, d):
    rows, order, repeats = ordered(draw(2000, d, np.random.default_rng(d)))
    assert sorted(order) == list(range(2000))
    columns = np.asfortranarray(rows)
    assert not any(dominators(columns[k + 1 :], row).any() for k, row in enumerate(rows))
    assert np.count_nonzero(~repeats) == len(np.unique(rows + 0.0, axis=0))


@given(points().filter(len))
def test_each_candidate_carries_its_own_ranks_with_and_without_repeats(p):
    ordered = in_z_order(columns_of(p))
    ranks = byte_ranks(columns_of(p))
    different = without_repeats(ordered)
    np.testing.assert_array_equal(ordered.candidates.ranks, ranks[ordered.candidates.order])
    np.testing.assert_array_equal(different.ranks, ranks[different.order])
    np.testing.assert_array_equal(different.order, ordered.candidates.order[~ordered.repeats])
