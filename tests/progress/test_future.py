"""Every outcome that future.py's table states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.progress import Arrivals, FutureBound
from skypane.progress.future import Verdict
from skypane.types import ConfigError

BOUND = FutureBound(max_ahead=100, support=4)


def judge(newest, times, votes=0, bound=BOUND):
    return bound.judge(newest, votes, Arrivals.of_times(times, pane=10))


def test_no_bound_no_limit():
    assert judge(None, [5], bound=FutureBound(None)) == Verdict(None, 0)


def test_a_batch_may_lead_by_max_ahead():
    assert judge(1_000, [990, 1_050]) == Verdict(1_150, 0)


def test_one_clock_in_the_future_is_put_aside():
    #     1000        1100 limit              9000
    # -----|-----------|----------------------x----
    assert judge(1_000, [1_000, 9_000]) == Verdict(1_100, 0)


def test_a_minority_of_bad_clocks_never_gathers_votes():
    votes = 0
    for _ in range(20):
        verdict = judge(1_000, [999] * 10 + [9_000] * 9, votes)
        votes = verdict.votes
        assert verdict == Verdict(1_100, 0)


def test_a_backlog_of_days_without_a_gap_is_believed_as_a_whole():
    assert judge(1_000, range(1_000, 3_000, 90)).limit == 2_980 + 100


def test_a_gap_ends_the_chain():
    assert judge(1_000, [1_100, 1_190, 1_310]).limit == 1_190 + 100


def test_a_pane_longer_than_max_ahead_moves_no_further_than_it():
    assert BOUND.judge(1_000, 0, Arrivals.of_times([1_050, 1_900], pane=1_000)).limit == 1_200


def test_the_stream_moved_as_a_whole_in_one_batch():
    assert judge(1_000, [5_000, 5_001, 5_002, 5_040]) == Verdict(5_140, 0)


def test_the_stream_moved_as_a_whole_a_row_at_a_time():
    votes, limits = 0, []
    for time in (5_000, 5_010, 5_020, 5_030):
        verdict = judge(1_000, [time], votes)
        votes = verdict.votes
        limits.append(verdict.limit)
    assert limits == [1_100, 1_100, 1_100, 5_130]


def test_after_a_jump_a_worse_clock_is_still_put_aside():
    assert judge(1_000, [5_000] * 4 + [99_000]).limit == 5_100


def test_stragglers_delay_a_jump_but_do_not_prevent_it():
    first = judge(1_000, [5_000] * 3 + [995])
    assert first == Verdict(1_100, 2)
    assert judge(1_000, [5_000] * 3 + [995], first.votes) == Verdict(5_100, 0)


def test_a_sparse_stream_is_not_starved():
    newest, believed = 0, 0
    votes = 0
    for step in range(1, 41):
        verdict = judge(newest, [step * 1_000], votes)
        votes = verdict.votes
        if verdict.limit >= step * 1_000:
            newest, believed = step * 1_000, believed + 1
    assert believed == 40 // BOUND.support


def test_the_first_batch_starts_from_its_lower_median():
    assert judge(None, [10, 20, 30, 9_000, 9_001]).limit == 130
    assert judge(None, [10, 9_000]).limit == 110


def test_a_first_batch_that_is_mostly_bad_is_believed():
    assert judge(None, [10, 9_000, 9_001]).limit == 9_101


def test_rows_far_in_the_past_are_no_matter_of_this_bound():
    assert judge(1_000, [-10_000, 1_000]) == Verdict(1_100, 0)


@pytest.mark.parametrize(("max_ahead", "support"), [(0, 4), (-5, 4), (100, 0)])
def test_what_cannot_be_is_refused(max_ahead, support):
    with pytest.raises(ConfigError, match=r"got (0|-5)"):
        FutureBound(max_ahead, support)


times = st.lists(st.integers(0, 400).map(lambda time: time * 10), min_size=1, max_size=20)


@given(times, st.integers(0, 4_000), st.integers(0, 3))
def test_judging_again_what_was_cut_changes_nothing(batch, newest, votes):
    whole = Arrivals.of_times(batch, pane=10)
    verdict = BOUND.judge(newest, votes, whole)
    assert BOUND.judge(newest, votes, whole.upto(verdict.limit).whole()) == verdict


@given(times, st.integers(0, 4_000))
def test_a_sorted_batch_or_its_rows_one_by_one_have_one_limit(batch, newest):
    """Where no votes are at stake: each row is within reach of those before it."""
    bound = FutureBound(max_ahead=100, support=1_000)
    reach = newest
    for time in sorted(batch):
        limit = judge(reach, [time], bound=bound).limit
        reach = max(reach, time) if time <= limit else reach
    assert judge(newest, batch, bound=bound).limit == reach + 100


@given(times, st.integers(0, 4_000), st.integers(0, 3))
def test_votes_stay_below_the_support(batch, newest, votes):
    assert 0 <= judge(newest, batch, votes).votes < BOUND.support
