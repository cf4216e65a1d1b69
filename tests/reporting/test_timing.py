"""A time line by hand: when windows opened, passed and were answered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reporting.made import HOUR, batch, hourly

from skypane.reporting.timing import answer_times


def test_a_window_by_hand():
    #  batch          0      1      2      3
    #  began, s       0      1      2      3        each takes half a second
    #  newest, h      1      2      3      4
    #  punctuation    0      1      2      3
    #  window [1, 2)         passed -> answered by the batch whose punctuation is 2: batch 2
    times = answer_times(hourly(4), np.array([2 * HOUR]), HOUR)
    assert times.end.tolist() == [2 * HOUR]
    assert times.latency.tolist() == [2.5]  # its start was reached by batch 0, its answer ended at 2.5
    assert times.lag.tolist() == [1.5]  # its end was reached by batch 1


def test_windows_that_are_still_open_are_left_out():
    times = answer_times(hourly(4), np.array([3, 4, 9]) * HOUR, HOUR)
    assert times.end.tolist() == [3 * HOUR]


def test_windows_that_only_a_drain_has_answered_are_left_out():
    drain = batch(batch_id=4, newest=4 * HOUR, punctuation=7 * HOUR, started_at=1_000_004.0, seconds={"total": 0.5})
    times = answer_times([*hourly(4), drain], np.array([3, 4, 5, 7]) * HOUR, HOUR)
    assert times.end.tolist() == [3 * HOUR, 4 * HOUR]
    assert times.lag.tolist() == [1.5, 1.5]  # the newest event came to 4 in batch 3, and the drain ended at 4.5


def test_no_batch_no_times():
    assert len(answer_times([], np.array([HOUR]), HOUR).end) == 0
    assert len(answer_times([batch()], np.array([HOUR]), HOUR).end) == 0


@given(st.integers(1, 30), st.integers(0, 3), st.integers(1, 5))
def test_laws(batches, slack, length):
    made = hourly(batches, slack=slack)
    times = answer_times(made, np.arange(1, batches + 5) * HOUR, length * HOUR)
    assert len(times.end) == max(0, batches - slack)
    assert np.all(times.latency >= times.lag)
    assert times.lag == pytest.approx(slack + 0.5)
