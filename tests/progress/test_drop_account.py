from __future__ import annotations

import pytest

from skypane.progress.drop_account import DropAccount

BUDGET, RESERVE = 0.02, 100


def share(credit: float, cycle: float = 0) -> float:
    return DropAccount(credit).share(BUDGET, RESERVE, cycle) / BUDGET


def test_every_row_brings_credit_and_every_dropped_row_costs_one():
    assert DropAccount(5).after(100, 3, BUDGET, RESERVE) == DropAccount(4)
    assert DropAccount().after(10**6, 0, BUDGET, RESERVE) == DropAccount(2 * RESERVE), (
        "what is beyond two reserves is forfeited"
    )
    assert DropAccount().after(100, 500, BUDGET, RESERVE) == DropAccount(-498), "debt never is"


def test_a_full_reserve_spends_what_comes_in():
    assert share(RESERVE) == 1


def test_credit_beyond_the_reserve_is_spent_over_five_and_a_gap_is_filled_twice_as_fast():
    assert share(RESERVE + 50) == pytest.approx(1.1)
    assert share(RESERVE - 50) == pytest.approx(0.8)


def test_it_is_full_when_hardly_anything_of_two_reserves_is_spent():
    assert DropAccount(1.95 * RESERVE).full(RESERVE)
    assert not DropAccount(1.85 * RESERVE).full(RESERVE)


def test_rows_of_a_long_cycle_give_no_reason_to_hurry():
    assert share(RESERVE + 50, cycle=50_000) == pytest.approx(1.05)
    assert share(RESERVE - 50, cycle=50_000) == pytest.approx(0.9)


@pytest.mark.parametrize(("credit", "bound"), [(-1_000, 0.7), (1_000, 1.25)])
def test_neither_debt_nor_credit_moves_it_far(credit: float, bound: float):
    assert share(credit) == pytest.approx(bound)
