from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.sharing import fair_shares

WANTED = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), min_size=1)


def test_a_hot_input_leaves_the_others_what_they_need():
    assert fair_shares({"hot": 1000, "a": 3, "b": 10}, 21) == {"a": 3, "b": 9, "hot": 9}


@given(wanted=WANTED, budget=st.integers(0, 120), turn=st.integers(0, 9))
def test_shares_are_max_min_fair_and_use_the_whole_budget(wanted: dict[str, int], budget: int, turn: int):
    shares = fair_shares(wanted, budget, turn)
    assert sum(shares.values()) == min(budget, sum(wanted.values()))
    assert all(0 <= shares[name] <= wanted[name] for name in wanted)
    short = [shares[name] for name in wanted if shares[name] < wanted[name]]
    # An input that gets less than it needs gets as much as any other, except for the row that does not divide.
    assert all(share + 1 >= max(shares.values()) for share in short)


@given(names=st.integers(1, 8), budget=st.integers(1, 8))
def test_each_input_gets_a_share_in_turn_of_a_budget_below_their_number(names: int, budget: int):
    wanted = {str(name): 100 for name in range(names)}
    got = [fair_shares(wanted, budget, turn) for turn in range(names)]
    assert all(any(shares[name] for shares in got) for name in wanted)
