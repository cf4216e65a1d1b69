"""Sums of floating-point numbers against arithmetic with fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.oracles import cut_off

from skypane.kernels import exact
from skypane.types import FloatArray, IntArray

COUNT, SUMS, SQUARES = 0, 1, 1 + exact.WIDTH

ANY = st.floats(allow_nan=False, allow_infinity=False)
#: what rounding leaves of the square of a smaller number is too small for a float64
LEAST_SQUARED = 2.0**-484
#: so that none of the numbers, nor its square, is cut off below the largest
NEAR = st.builds(lambda digits, shift: digits * 2.0**shift, st.integers(-(2**53), 2**53), st.integers(-20, 20))


def state_of(numbers: list[float]) -> IntArray:
    """The state of one group of these numbers: their count, their sum, the sum of their squares."""
    state = np.zeros((1, 1 + 2 * exact.WIDTH), np.int64)
    state[:, [SUMS, SQUARES]] = -1
    state[0, COUNT] = len(numbers)
    values: FloatArray = np.array(numbers, np.float64)
    ids, keep = np.zeros(len(values), np.int64), np.ones(len(values), np.bool_)
    exact.add_numbers(state, SUMS, ids, values.view(np.int64), keep)
    exact.add_squares(state, SQUARES, ids, values, keep)
    return state


@given(st.lists(ANY, max_size=30), st.randoms(use_true_random=False))
def test_a_sum_is_the_same_to_the_bit_in_any_order(numbers: list[float], random):
    shuffled = random.sample(numbers, len(numbers))
    assert (state_of(numbers) == state_of(shuffled)).all()


@given(st.lists(NEAR, min_size=1, max_size=30))
def test_a_sum_is_off_by_less_than_one_unit_in_the_last_place(numbers: list[float]):
    true = sum(map(Fraction, numbers), Fraction(0))
    (found,) = exact.exact_values(state_of(numbers), SUMS)
    assert abs(Fraction(found) - true) <= Fraction(math.ulp(float(true)))


@given(st.lists(ANY, min_size=1, max_size=30))
def test_what_is_cut_off_is_far_below_the_largest_number(numbers: list[float]):
    true = sum(map(Fraction, numbers), Fraction(0))
    (found,) = exact.exact_values(state_of(numbers), SUMS)
    if math.isfinite(found):
        assert abs(Fraction(found) - true) <= Fraction(math.ulp(float(true))) + cut_off(numbers)


@given(st.lists(NEAR, min_size=1, max_size=30), st.sampled_from([0.0, 1e9, -1e12]))
def test_squared_deviations_are_stable_far_from_zero(numbers: list[float], offset: float):
    moved = [number / 2.0**60 + offset for number in numbers]
    values = list(map(Fraction, moved))
    mean = sum(values, Fraction(0)) / len(values)
    true = sum(((value - mean) ** 2 for value in values), Fraction(0))
    (found,) = exact.squared_deviations(state_of(moved), COUNT, SUMS, SQUARES)
    cut_off = len(moved) * max(value**2 for value in moved) / 2.0**94
    assert math.isclose(found, float(true), rel_tol=1e-12, abs_tol=cut_off)


@given(st.floats(-1e150, 1e150).filter(lambda number: not 0 < abs(number) < LEAST_SQUARED), st.integers(1, 1_000))
@example(LEAST_SQUARED * 1.37, 2)
def test_equal_numbers_do_not_deviate(number: float, n: int):
    assert exact.squared_deviations(state_of([number] * n), COUNT, SUMS, SQUARES)[0] == 0.0


@pytest.mark.parametrize(
    ("numbers", "total", "deviation"),
    [
        ([math.inf, 1.0], math.inf, math.nan),
        ([-math.inf, 1e308, 1e308], -math.inf, math.nan),
        ([math.inf, -math.inf], math.nan, math.nan),
        ([math.nan, 1.0], math.nan, math.nan),
        ([1e308, 1e308, -1e308], 1e308, math.inf),
        ([1e308, 1e308], math.inf, math.inf),
        ([1e200], 1e200, 0.0),
        ([5e-324, 5e-324], 1e-323, 0.0),
        ([0.0, -0.0], 0.0, 0.0),
        ([], 0.0, 0.0),
        ([0.1] * 10, 1.0, 0.0),
        ([1e16, 1.0, -1e16], 1.0, 2e32),
    ],
)
def test_what_is_not_finite_or_hardly_a_number(numbers: list[float], total: float, deviation: float):
    state = state_of(numbers)
    assert exact.exact_values(state, SUMS)[0] == pytest.approx(total, nan_ok=True, rel=1e-15, abs=0)
    assert exact.squared_deviations(state, COUNT, SUMS, SQUARES)[0] == pytest.approx(deviation, nan_ok=True, abs=0)
