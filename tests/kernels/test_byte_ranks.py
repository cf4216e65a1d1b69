from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.kernels.strategies import DISTRIBUTIONS, points

from skypane.kernels.byte_ranks import byte_ranks, sample_columns
from skypane.kernels.column_layout import columns_of


def assert_monotone(p):
    ranks = byte_ranks(columns_of(p)).astype(int)
    for j in range(p.shape[1]):
        order = np.argsort(p[:, j], kind="stable")
        values, r = p[order, j], ranks[order, j]
        assert (np.diff(r) >= 0).all()
        assert (np.diff(r)[values[1:] == values[:-1]] == 0).all()
    assert ranks.max() <= 254


@given(points().filter(len))
def test_ranks_are_monotone_and_equal_for_equal_values(p):
    assert_monotone(p)


@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
def test_ranks_are_monotone_beyond_the_sample(draw):
    assert_monotone(draw(5000, 3, np.random.default_rng(2)))


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_ranks_spread_evenly(scale):
    p = scale * np.random.default_rng(3).random((20_000, 2))
    assert np.bincount(byte_ranks(columns_of(p))[:, 0]).max() < 20_000 * 0.03


def test_ranks_spread_over_a_heavy_tail():
    p = np.exp(8.0 * np.random.default_rng(3).standard_normal((20_000, 1)))
    assert np.bincount(byte_ranks(columns_of(p))[:, 0]).max() < 20_000 * 0.03


def test_an_outlier_costs_no_resolution():
    p = np.random.default_rng(3).random((20_000, 1))
    p[::50] = 1e200
    assert len(np.unique(byte_ranks(columns_of(p)))) > 200


def test_a_sample_covers_sources_that_alternate():
    turns = np.arange(8192.0) % 8
    assert set(sample_columns(columns_of(turns[:, None]), 512)[0]) == set(range(8))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 7), (1000, 512), (1024, 512)])
def test_a_sample_takes_one_row_of_each_stratum(n, m):
    rows = sample_columns(columns_of(np.arange(float(n))[:, None]), m)[0]
    stride = n // m
    assert ((rows >= np.arange(m) * stride) & (rows < (np.arange(m) + 1) * stride)).all()
