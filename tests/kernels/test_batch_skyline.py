from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests import oracles
from tests.kernels.strategies import DISTRIBUTIONS, points
from tests.parameters import slow_but

from skypane.kernels import skyline_indices

# around the limits of nested loops (192), of strong points (1,024), of a bitmap block and a group (512)
SIZES = [1, 2, 17, 192, 193, 600, 1023, 1024]


@given(points())
def test_is_the_definition(p):
    assert skyline_indices(p).tolist() == oracles.skyline_indices(p)


@given(points())
def test_the_oracle_for_thousands_of_rows_is_the_one_for_few(p):
    assert np.flatnonzero(oracles.skyline_mask(p)).tolist() == oracles.skyline_indices(p)


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", range(1, 13))
def test_every_stage_agrees_with_the_definition(draw, d):
    rng = np.random.default_rng(d)
    for n in SIZES:
        p = draw(n, d, rng)
        expected = np.flatnonzero(oracles.skyline_mask(p))
        np.testing.assert_array_equal(skyline_indices(p), expected, err_msg=f"n={n}")


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", slow_but((2, 9), (2, 3, 5, 9)))
def test_many_blocks(draw, d):
    p = draw(3500, d, np.random.default_rng(d))
    np.testing.assert_array_equal(skyline_indices(p), np.flatnonzero(oracles.skyline_mask(p)))


@pytest.mark.long
@pytest.mark.parametrize("d", [16, 33, 70])
def test_many_columns(d):
    p = np.random.default_rng(d).integers(0, 9, (1500, d)).astype(float)
    p[:, 3:] *= p[:, :1] > 2  # else nothing is dominated
    np.testing.assert_array_equal(skyline_indices(p), np.flatnonzero(oracles.skyline_mask(p)))


@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
def test_inputs_stay_as_they_were_and_may_be_read_only(draw):
    p = np.asfortranarray(draw(2000, 4, np.random.default_rng(4)))
    before = p.copy(order="F")
    p.flags.writeable = False
    skyline_indices(p)
    assert p.tobytes(order="F") == before.tobytes(order="F")


@pytest.mark.parametrize(
    "change",
    [np.ascontiguousarray, np.asfortranarray, lambda p: np.repeat(p, 2, axis=0)[::2], lambda p: p[:, ::-1][:, ::-1]],
    ids=["C", "Fortran", "strided", "negative strides"],
)
def test_any_layout(change):
    p = np.random.default_rng(5).random((1500, 3))
    np.testing.assert_array_equal(skyline_indices(change(p)), np.flatnonzero(oracles.skyline_mask(p)))


def test_takes_integers_and_lists():
    assert skyline_indices([[1, 3], [2, 2], [2, 3]]).tolist() == [0, 1]
    assert skyline_indices(np.array([[3], [1], [1]], np.int8)).tolist() == [1, 2]


def test_zeros_are_equal_whatever_their_sign():
    assert skyline_indices(np.array([[0.0, -0.0], [-0.0, 0.0], [0.0, 1.0]])).tolist() == [0, 1]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_rows(d):
    rows = skyline_indices(np.empty((0, d)))
    assert rows.shape == (0,)
    assert rows.dtype == np.int64


@pytest.mark.parametrize("n", [1, 30, 700, 5000, 5003])
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_nan_is_refused_wherever_it_stands(n, d):
    rng = np.random.default_rng(n)
    for row in {0, n // 2, n - 1}:
        p = np.asfortranarray(rng.random((n, d)))
        p[row, d - 1] = np.nan
        with pytest.raises(ValueError, match=rf"NaN in column {d - 1} of row {row}"):
            skyline_indices(p)


@pytest.mark.parametrize("shape", [(3,), (3, 0), (2, 255), (2, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="need points of shape"):
        skyline_indices(np.zeros(shape))


def test_a_million_equal_rows():
    assert len(skyline_indices(np.ones((1_000_000, 4), order="F"))) == 1_000_000


def test_a_million_copies_of_few_rows():
    few = np.array([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 1.0], [2.0, 2.0, 1.0]])
    which = np.random.default_rng(7).integers(0, 4, 1_000_000)
    np.testing.assert_array_equal(skyline_indices(np.asfortranarray(few[which])), np.flatnonzero(which < 3))


def test_rows_that_no_rank_and_no_key_distinguishes():
    """A sample sees one value per column, nearly always: order and filter have the values alone to go by."""
    n = 20_000
    p = np.zeros((n, 4), order="F")
    p[7::1000, 0] = np.arange(20)
    p[7::1000, 1] = -np.arange(20)
    p[3::1000, 2] = 1.0
    np.testing.assert_array_equal(skyline_indices(p), np.setdiff1d(np.arange(n), np.arange(3, n, 1000)))
