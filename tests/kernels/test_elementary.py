"""Elementary functions against decimals of 50 digits, and against C's where that is exact by definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.kernels import elementary
from skypane.types import FloatArray

OF_BOTH_SIGNS = [0.0, 0.5, 1.0, 2.0, 1e300, math.inf]
SPECIAL = [*OF_BOTH_SIGNS, *(-x for x in OF_BOTH_SIGNS), 3.0, -7.0, math.nan, 2.0**53 + 2, 1e-320]


def near_one(rng: np.random.Generator, n: int) -> FloatArray:
    return 1 + (rng.random(n) - 0.5) * 2.0 ** -rng.integers(0, 53, n)


def anywhere(rng: np.random.Generator, n: int) -> FloatArray:
    return np.ldexp(rng.random(n) + 1e-9, rng.integers(-1_000, 1_000, n))


def worst(found: FloatArray, exact: Sequence[Decimal]) -> float:
    """The largest error, in units of the last place of the true value rounded."""
    return max(
        float(abs(Decimal(one) - true) / Decimal(math.ulp(float(true))))
        for one, true in zip(found.tolist(), exact, strict=True)
    )


def test_logarithms_are_the_true_ones_rounded():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(2_000) * 10, near_one(rng, 2_000), anywhere(rng, 2_000), [5e-324, 1e-310, 1.7e308]])
    with localcontext(prec=50):
        assert worst(elementary.log(x), [Decimal(one).ln() for one in x.tolist()]) < 0.501


def test_exponentials_are_the_true_ones_rounded():
    rng = np.random.default_rng(2)
    x = np.concatenate(
        [(rng.random(3_000) - 0.5) * 1_400, (rng.random(2_000) - 0.5) * 2.0 ** -rng.integers(0, 60, 2_000)]
    )
    with localcontext(prec=50):
        assert worst(elementary.exp(x), [Decimal(one).exp() for one in x.tolist()]) < 0.501


def test_powers_are_the_true_ones_rounded():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.random(1_500) * 10 + 1e-9, near_one(rng, 1_500), anywhere(rng, 1_500)])
    y = (rng.random(len(x)) - 0.5) * 2.0 ** rng.integers(-5, 9, len(x))
    with localcontext(prec=60):
        exact = [
            (Decimal(base).ln() * Decimal(power)).exp() for base, power in zip(x.tolist(), y.tolist(), strict=True)
        ]
    usual = np.array([Decimal("1e-300") < one < Decimal("1e300") for one in exact])
    kept = [one for one, is_usual in zip(exact, usual, strict=True) if is_usual]
    assert worst(elementary.power(x[usual], y[usual]), kept) < 0.501


@pytest.mark.parametrize("base", SPECIAL)
@pytest.mark.parametrize("exponent", SPECIAL)
def test_powers_of_special_numbers_equal_those_of_c(base: float, exponent: float):
    with np.errstate(all="ignore"):
        # Arrays are taken because a root of a single exponent 0.5 is NumPy's own.
        expected = np.power([base, base], [exponent, 3.0])[0]
    found = elementary.power(base, exponent)
    np.testing.assert_array_max_ulp(found, expected, 1)
    assert np.signbit(found) == np.signbit(expected) or math.isnan(found)


def test_logarithms_and_exponentials_of_special_numbers():
    np.testing.assert_array_equal(
        elementary.log([0.0, -0.0, -1.0, math.inf, math.nan]), [-math.inf, -math.inf, math.nan, math.inf, math.nan]
    )
    np.testing.assert_array_equal(
        elementary.exp([-math.inf, -800, 0, 800, math.inf, math.nan]), [0, 0, 1, math.inf, math.inf, math.nan]
    )
    assert elementary.exp(-744.9) == 5e-324


@given(st.integers(-300, 300), st.integers(-12, 12))
def test_powers_of_whole_numbers_that_are_whole_are_exact(base: int, exponent: int):
    if base and 0 < abs(base) ** max(exponent, 0) < 2**53 and exponent >= 0:
        assert elementary.power(base, exponent) == base**exponent


def test_shapes_are_broadcast_together():
    assert elementary.power(np.array([[1.0], [2.0]]), np.array([2.0, 3.0])).tolist() == [[1, 1], [4, 8]]
    assert isinstance(elementary.log(1.0), float)
    assert elementary.exp(np.arange(6.0)[::2]).tolist() == [elementary.exp(x) for x in (0.0, 2.0, 4.0)]


@given(st.lists(st.floats(1e-300, 1e300), min_size=2, max_size=50))
def test_order_is_kept(values: list[float]):
    logs = elementary.log(np.sort(values))
    assert (np.diff(logs) >= 0).all()
    assert (np.diff(elementary.exp(np.clip(logs, -700, 700))) >= 0).all()
