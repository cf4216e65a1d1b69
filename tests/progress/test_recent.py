from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.progress.recent import EDGES, RecentDistances
from skypane.types import CheckpointError

NO_END = 1e18


def seen(distances, rows=None, half_life=NO_END):
    counts = np.ones(len(distances), np.int64) if rows is None else np.array(rows)
    return RecentDistances().add(np.array(distances, np.int64), counts, 1_000, half_life)


def test_edges_ascend_from_zero_in_steps_of_nine_percent():
    assert EDGES[0] == 0
    assert (np.diff(EDGES) > 0).all()
    large = EDGES[EDGES > 100]
    assert (large[1:] / large[:-1]).max() < 1.1


def test_the_smallest_slack_that_a_share_allows():
    # 100 rows: 90 on time, 6 at distance 0, 4 at distance 1024 (an edge); one more counts beyond all
    recent = seen([-5, 0, 1_024], [90, 6, 4])
    assert recent.slack_for(0.11) == 0
    assert recent.slack_for(0.10) == 1
    assert recent.slack_for(0.05) == 1
    assert recent.slack_for(0.04) == EDGES[np.searchsorted(EDGES, 1_024) + 1]
    assert recent.slack_for(0.005) is None
    assert recent.longest() == EDGES[np.searchsorted(EDGES, 1_024) + 1]


def test_nothing_known_tells_nothing():
    assert RecentDistances().slack_for(0.5) is None
    assert RecentDistances().longest() == 0
    assert RecentDistances().rows_in(1_000) == 0.0


def test_old_rows_weigh_half_after_a_half_life():
    recent = seen([8], [100], half_life=100).add(np.array([-1]), np.array([100]), 1_000, 100)
    assert sum(recent.late) == pytest.approx(50)
    assert recent.total == pytest.approx(150)


def test_rows_in_a_time_follow_the_recent_rate():
    assert seen([-1], [50]).rows_in(2_000) == pytest.approx(100)


def test_what_is_forgotten_leaves_no_bin_behind():
    recent = seen([1_000_000], [1], half_life=10)
    for _ in range(30):
        recent = recent.add(np.array([0]), np.array([5]), 10, 10)
    assert len(recent.late) == 1


def test_distances_beyond_the_last_edge_are_in_the_last_bin():
    recent = seen([2**62])
    assert len(recent.late) == len(EDGES)
    assert recent.longest() == EDGES[-1]


distances = st.lists(st.integers(-100, 10_000), min_size=1, max_size=60)


@given(distances, st.floats(0.001, 1))
def test_slack_for_is_the_definition(drawn, share):
    """The smallest edge beyond which, with one row more, lies at most the share of all rows."""
    expected = [edge for edge in EDGES.tolist() if sum(d >= edge for d in drawn) + 1.0 <= share * len(drawn)]
    assert seen(drawn).slack_for(share) == (expected[0] if expected else None)


@given(distances)
def test_longest_drops_nothing_and_is_the_smallest_such_edge(drawn):
    longest = seen(drawn).longest()
    assert all(distance < longest for distance in drawn if distance >= 0)
    below = [edge for edge in EDGES.tolist() if edge < longest]
    assert not below or any(distance >= below[-1] for distance in drawn)


@given(distances, distances)
def test_snapshot_and_restore(first, second):
    recent = seen(first, half_life=7).add(np.array(second), np.ones(len(second), np.int64), 3, 7)
    assert RecentDistances.restored(json.loads(json.dumps(recent.snapshot()))) == recent


@pytest.mark.parametrize("damaged", [{}, {"late": 3, "total": 1, "span": 1}, {"late": ["a"], "total": 1, "span": 1}])
def test_a_damaged_snapshot_is_refused(damaged):
    with pytest.raises(CheckpointError, match="recent distances"):
        RecentDistances.restored(damaged)
