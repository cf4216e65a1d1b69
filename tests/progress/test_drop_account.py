from __future__ import annotations

import pytest

from skypane.progress.drop_account import DropAccount, Drops

BUDGET, RESERVE = 0.02, 100


def after(credit: float, rows: int, dropped: int = 0, unavoidable: int = 0, cycle: float = 0) -> float:
    return DropAccount(credit).after(rows, Drops(dropped, unavoidable), BUDGET, RESERVE, cycle).credit


def test_every_row_brings_credit_and_every_dropped_row_costs_one():
    assert after(5, 100, dropped=3) == 4
    assert after(0, 10**6) == 2 * RESERVE, "what is beyond two reserves is forfeited"
    assert after(0, 10**6, cycle=30_000) == 600, "or beyond what a cycle earns"
    assert after(0, 100, dropped=500) == -498, "debt never is"


def test_rows_that_nothing_could_have_saved_make_a_debt_of_half_a_reserve_at_most():
    assert after(20, 100, unavoidable=30) == -8
    assert after(20, 100, unavoidable=10**6) == -RESERVE / 2
    assert after(-40, 100, unavoidable=10**6) == -RESERVE / 2
    assert after(-80, 100, unavoidable=10**6) == -78, "what is beyond is not forgiven either"
    assert after(20, 100, dropped=80, unavoidable=10**6) == -58


@pytest.mark.parametrize(("credit", "cycle", "spent"), [
    (RESERVE, 0, 1),  # a full reserve spends what comes in
    # Credit beyond the reserve is spent over five, and a gap is filled twice as fast.
    (RESERVE + 50, 0, pytest.approx(1.1)),
    (RESERVE - 50, 0, pytest.approx(0.8)),
    # Rows of a long cycle give no reason to hurry.
    (RESERVE + 50, 50_000, pytest.approx(1.05)),
    (RESERVE - 50, 50_000, pytest.approx(0.9)),
    # Neither debt nor credit moves it far.
    (-1_000, 0, pytest.approx(0.7)),
    (1_000, 0, pytest.approx(1.25)),
])  # fmt: skip
def test_the_share_that_is_spent(credit: float, cycle: float, spent: float):
    assert DropAccount(credit).share(BUDGET, RESERVE, cycle) / BUDGET == spent


def test_it_is_full_when_hardly_anything_of_two_reserves_is_spent():
    assert DropAccount(1.95 * RESERVE).full(RESERVE)
    assert not DropAccount(1.85 * RESERVE).full(RESERVE)
