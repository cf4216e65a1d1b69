from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting import Routing, Share
from skypane.control.splitting.expected import ExpectedPanes


def test_a_batch_is_expected_to_be_the_last_one_moved_on():
    expected = ExpectedPanes().observe({3: 10, 4: 50}).observe({5: 20, 6: 60})
    assert expected.next() == {7: 20, 8: 60}
    assert expected.observe({}).next() == {7: 20, 8: 60}, "an empty batch says nothing"


def test_before_the_first_batch_nothing_is_expected_and_after_it_the_same_again():
    assert ExpectedPanes().next() == {}
    assert ExpectedPanes().observe({3: 10}).next() == {3: 10}


def test_a_batch_of_late_rows_does_not_move_time_back():
    assert ExpectedPanes().observe({9: 1}).observe({2: 5}).next() == {2: 5}


def test_slots_by_hand():
    """Of four slots, rows 5 to 3 take two and a half to one and a half: the remainder goes to the first of equals."""
    routing = Routing(4, {7: (Share(2, 5), Share(0, 3))})
    assert routing.slots(7, 4) == [2, 2, 2, 0]
    assert Routing(2, {7: (Share(0, 1), Share(1, 2))}).slots(7, 4) == [0, 1, 1, 1], "to the largest remainder before"
    assert routing.slots(8, 3) == [0, 0, 0], "no shares: one owner by turn"


@given(
    shares=st.lists(st.builds(Share, st.integers(0, 9), st.integers(1, 1_000)), min_size=1, max_size=6),
    count=st.integers(1, 64),
)
def test_slots_keep_the_proportions_to_within_one(shares, count):
    slots = Routing(10, {0: tuple(shares)}).slots(0, count)
    assert len(slots) == count
    total = sum(share.rows for share in shares)
    for worker in range(10):
        exact = count * sum(share.rows for share in shares if share.worker == worker) / total
        assert slots.count(worker) == pytest.approx(exact, abs=len(shares))
