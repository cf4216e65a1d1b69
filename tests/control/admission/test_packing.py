from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.packing import best_fit, fewest_bins


def test_an_item_goes_where_it_leaves_the_least_room():
    assert best_fit([4, 3, 3], {1: 10, 2: 5, 3: 4}) == [3, 2, 1]


def test_the_first_item_that_fits_nowhere_ends_it():
    assert best_fit([3, 8, 1], {1: 4}) == [1]


def test_sums_of_floats_that_make_up_a_bin_fit():
    assert best_fit([0.1, 0.2], {1: 0.3}) == [1, 1]


def test_waste_beside_large_items_is_counted():
    """Three of 6 and three of 5 in bins of 10: their sum is 33, but no two 6s, and no 5 beside a 6, share one."""
    assert fewest_bins([6, 6, 6, 5, 5, 5], 10) == 5


def optimum(sizes: list[int], capacity: int) -> int:
    """Try all assignments."""
    ways = product(range(len(sizes)), repeat=len(sizes))
    fits = (way for way in ways if all(sum(s for s, b in zip(sizes, way, strict=True) if b == bin_) <= capacity
                                       for bin_ in set(way)))  # fmt: skip
    return min(len(set(way)) for way in fits)


@given(sizes=st.lists(st.integers(1, 10), min_size=1, max_size=5))
def test_the_bound_is_never_above_the_optimum_and_never_below_the_sum(sizes: list[int]):
    bound = fewest_bins(sizes, 10)
    assert -(-sum(sizes) // 10) <= bound <= optimum(sizes, 10)


def test_larger_than_a_bin_is_a_bin_and_nothing_is_none():
    assert fewest_bins([25, 3], 10) == 2
    assert fewest_bins([], 10) == fewest_bins([0.0], 10) == 0
