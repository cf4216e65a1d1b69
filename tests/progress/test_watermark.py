from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import batches, steps

from skypane.progress import Watermark


def test_worked_by_hand():
    #            batch 1       2: older      3: 40 ahead
    stream = [[1_000, 1_012], [1_005, 990], [1_052, 1_000]]
    states = steps(Watermark(delay="15 us", max_ahead="100 us"), stream)
    assert [state.punctuation for state in states] == [997, 997, 1_037]
    assert [state.newest for state in states] == [1_012, 1_012, 1_052]
    assert [state.seen for state in states] == [2, 4, 6]
    assert [state.dropped for state in states] == [0, 0, 0]  # pane [990, 1000) ends after 997


def test_a_row_is_dropped_once_its_pane_is_closed():
    states = steps(Watermark(delay="0 us"), [[1_000], [1_025], [1_009, 1_010, 1_019, 1_020]])
    assert states[1].punctuation == 1_025
    assert states[2].dropped == 3  # panes [1000, 1010) and [1010, 1020)


@given(batches(), st.integers(0, 50))
def test_is_sparks_rule(stream, delay):
    newest = None
    for state, times in zip(steps(Watermark(timedelta(microseconds=delay)), stream), stream, strict=True):
        newest = max(times) if newest is None else max(newest, *times)
        assert (state.punctuation, state.slack) == (newest - delay, delay)


@given(batches(), st.integers(0, 50))
def test_behind_is_the_rule_a_batch_later(stream, delay):
    before = None
    at_once, behind = (steps(Watermark(timedelta(microseconds=delay), behind=late), stream) for late in (False, True))
    for now, then in zip(at_once, behind, strict=True):
        assert then.punctuation == before
        before = now.punctuation


def test_durations_are_read():
    assert Watermark("10 seconds").describe() == {
        "policy": "Watermark",
        "delay": 10_000_000,
        "max_ahead": 86_400_000_000,
        "support": 32,
        "patience": 10_000,
        "clocks": "accept",
        "max_clock_offset": 60_000_000,
        "behind": False,
    }
