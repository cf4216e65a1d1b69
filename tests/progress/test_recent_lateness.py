from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.progress.recent_lateness import EDGES, RecentDistances

NO_END = 1e18
LONG = 10**18
"""Watched for so long that every slack is known."""


def seen(distances, rows=None, half_life=NO_END):
    counts = np.ones(len(distances), np.int64) if rows is None else np.array(rows)
    return RecentDistances().add(np.array(distances, np.int64), counts, 1_000, half_life)


def spread_out(batches):
    """10,000 rows, 100 of them at distance 1024, the others on time, in so many batches of a block each."""
    recent = RecentDistances()
    for _ in range(batches):
        rows = np.array([9_900, 100]) // batches
        recent = recent.add(np.array([-5, 1_024]), rows, 1_000, half_life=32 * 10_000 / batches)
    return recent


def test_edges_ascend_from_zero_in_steps_of_nine_percent():
    assert EDGES[0] == 0
    assert (np.diff(EDGES) > 0).all()
    large = EDGES[EDGES > 100]
    assert (large[1:] / large[:-1]).max() < 1.1
    assert EDGES[-1] == np.iinfo(np.int64).max


def test_edges_are_the_powers_rounded_in_integers_which_no_cpu_does_otherwise():
    assert [int(edge) for edge in EDGES[:12]] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    for eighths, edge in zip(range(503, 103, -1), EDGES[-2::-1].tolist(), strict=False):
        assert (2 * edge - 1) ** 8 <= 2 ** (eighths + 8) < (2 * edge + 1) ** 8


@pytest.mark.parametrize("distance", [2**50, 33 * 365 * 86_400 * 10**6, 9_998 * 366 * 86_400 * 10**6, 2**62, 2**63 - 1])
def test_no_distance_is_too_far(distance):
    recent = seen([-5, distance], [900, 100])
    assert recent.share_dropped_by(0) == recent.share_dropped_by(distance // 2) == 0.1
    assert recent.slack_for(0.2, LONG, 10) == 0
    slack = seen([distance], [1_000]).slack_for(0.5, LONG, 10)
    assert slack is None or slack > distance / 1.1


def test_what_each_slack_would_have_dropped():
    recent = seen([-5, 0, 1_024], [90, 6, 4])
    assert recent.share_dropped_by(0) == 0.1
    assert recent.share_dropped_by(1) == 0.04
    assert recent.share_dropped_by(1_024) == 0.04
    assert recent.share_dropped_by(1_200) == 0.0


@pytest.mark.long
def test_the_smallest_slack_that_a_share_allows():
    recent = RecentDistances()
    for _ in range(10_000):
        recent = recent.add(np.array([-5, 0, 1_024]), np.array([90, 6, 4]), 1_000, half_life=3_200)
    edge = EDGES[np.searchsorted(EDGES, 1_024) + 1]
    assert recent.slack_for(0.12, LONG, 10) == 0
    assert recent.slack_for(0.08, LONG, 10) == 1
    between = recent.slack_for(0.03, LONG, 10)
    assert between is not None
    assert 1_024 < between < edge, "some of the bin, if its rows lie evenly in it"
    assert recent.slack_for(0.03, LONG, 10, care=1.0) == edge


def test_rows_late_together_count_less_than_rows_late_one_by_one():
    assert spread_out(100).slack_for(0.015, LONG, 10) == 0
    assert spread_out(2).slack_for(0.015, LONG, 10) != 0


def test_a_slack_is_known_after_a_pane_and_itself():
    recent = spread_out(100)  # 41 of 4,132 rows weigh still
    assert recent.slack_for(0.005, 1_000, 10) is None
    assert recent.slack_for(0.005, 1_200, 10) is not None


def test_few_rows_give_no_estimate():
    assert RecentDistances().slack_for(0.5, LONG, 10) is None
    assert RecentDistances().share_dropped_by(0) == 0.0
    assert RecentDistances().rows_in(1_000) == 0.0
    assert seen([-1], [50]).slack_for(0.1, LONG, 10) is None, "five rows"


def test_old_rows_weigh_half_after_a_half_life():
    recent = seen([8], [100], half_life=100).add(np.array([-1]), np.array([100]), 1_000, 100)
    assert recent.dropped[0] == pytest.approx(50)
    assert recent.total == pytest.approx(150)


def test_rows_in_a_time_follow_the_recent_rate():
    assert seen([-1], [50]).rows_in(2_000) == pytest.approx(100)


def test_what_is_forgotten_leaves_nothing_behind():
    recent = seen([1_000_000], [1], half_life=10)
    for _ in range(30):
        recent = recent.add(np.array([0]), np.array([5]), 10, 10)
    assert len(recent.dropped) == len(recent.squares) == 1


distances = st.lists(st.integers(-100, 10_000), min_size=1, max_size=60)


@given(distances, st.integers(0, 12_000))
def test_a_slack_drops_the_rows_at_its_distance_or_further(drawn, slack):
    edge = int(EDGES[np.searchsorted(EDGES, slack, side="right") - 1])
    expected = sum(distance >= edge for distance in drawn) / len(drawn)
    assert seen(drawn).share_dropped_by(slack) == pytest.approx(expected)


@given(st.lists(distances, max_size=5))
def test_a_snapshot_is_the_value_again(batches):
    recent = RecentDistances()
    for drawn in batches:
        recent = recent.add(np.array(drawn), np.ones(len(drawn), np.int64), 7, 50)
    assert RecentDistances.restored(json.loads(json.dumps(recent.snapshot()))) == recent
