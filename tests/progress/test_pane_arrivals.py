from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.progress import PaneArrivals
from skypane.windows import Windows


def rows_of(batch):
    return list(
        zip(*(getattr(batch, name).tolist() for name in ("pane_start", "rows", "oldest", "newest")), strict=True)
    )


def columns(*values):
    return [np.array(column, np.int64) for column in values]


def test_sums_up_by_pane_whatever_the_order():
    batch = PaneArrivals.of_times([25, 11, 19, -1, 10], Windows(10, 10))
    assert rows_of(batch) == [(-10, 1, -1, -1), (10, 3, 10, 19), (20, 1, 25, 25)]
    assert batch.pane_end.tolist() == [0, 20, 30]
    assert batch.total == 5


def test_panes_are_put_in_order():
    batch = PaneArrivals(*columns([20, 10], [30, 20], [1, 2], [25, 11], [25, 19]))
    assert rows_of(batch) == [(10, 2, 11, 19), (20, 1, 25, 25)]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="one length"):
        PaneArrivals(*columns([0], [10], [1, 2], [0], [0]))


def test_late_is_what_the_punctuation_closed():
    batch = PaneArrivals.of_times([5, 15, 16, 25], Windows(10, 10))
    assert [batch.late(punctuation) for punctuation in (None, 9, 10, 20, 29)] == [0, 0, 1, 3, 3]


def test_upto_keeps_panes_that_start_at_the_limit_and_clamps_their_times():
    batch = PaneArrivals.of_times([5, 25, 28, 31], Windows(10, 10)).upto(20)
    assert rows_of(batch) == [(0, 1, 5, 5), (20, 2, 20, 20)]


def test_upto_without_limit_is_the_batch():
    batch = PaneArrivals.of_times([5], Windows(10, 10))
    assert batch.upto(None) is batch


def test_a_batch_without_rows():
    assert (len(PaneArrivals.none()), PaneArrivals.none().total, PaneArrivals.none().late(5)) == (0, 0, 0)


@given(st.lists(st.integers(-100, 100), min_size=1), st.integers(-120, 120), st.integers(-120, 120))
def test_cutting_twice_is_cutting_at_the_lower_limit(times, first, second):
    batch = PaneArrivals.of_times(times, Windows(10, 10))
    twice = batch.upto(first).upto(second)
    assert rows_of(twice) == rows_of(batch.upto(min(first, second)))


@given(st.lists(st.integers(-100, 100), min_size=1), st.integers(-120, 120))
def test_the_panes_on_both_sides_of_a_time_are_the_batch_again(times, limit):
    batch = PaneArrivals.of_times(times, Windows(10, 10))
    beyond = batch.pane_start > limit
    assert rows_of(batch.only(beyond).union(batch.only(~beyond))) == rows_of(batch)


@given(st.lists(st.integers(-100, 100)), st.integers(1, 30), st.integers(-5, 5))
def test_of_times_is_the_definition(times, pane, offset):
    batch = PaneArrivals.of_times(np.array(times, np.int64), Windows(pane, pane, offset))
    expected: dict[int, list[int]] = {}
    for time in sorted(times):
        expected.setdefault((time - offset) // pane * pane + offset, []).append(time)
    assert rows_of(batch) == [(start, len(seen), seen[0], seen[-1]) for start, seen in expected.items()]
