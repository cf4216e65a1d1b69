from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import heavy_tailed, in_order_of_arrival, states, steps

from skypane.progress import AqKSlack, KSlack, PaneArrivals, SourceCount
from skypane.progress.recent_lateness import EDGES
from skypane.windows import Windows

SECOND = 1_000_000


def even(rows, late_every, delay):
    """A tuple per millisecond, every n-th of them late by `delay`."""
    event = np.arange(rows, dtype=np.int64) * 1_000
    event[::late_every] -= delay
    return event


@pytest.mark.long
def test_worked_by_hand():
    # Two rows in a hundred are 5 s late; a budget of 10 % need not wait for them, one of 1 % must.
    event = even(100_000, late_every=50, delay=5 * SECOND)
    *_, generous = states(AqKSlack(0.10), event, 100, 100_000)
    *_, strict = states(AqKSlack(0.01), event, 100, 100_000)
    assert generous.slack == 0
    assert generous.dropped == pytest.approx(0.02 * generous.seen, rel=0.2)
    # All of them end 4.9 to 5 s behind, within one bin.
    assert 4.5 * SECOND <= strict.slack <= 5 * SECOND
    assert strict.dropped <= 0.01 * strict.seen


LATE_STREAMS = st.tuples(
    st.integers(0, 2**32 - 1), st.floats(1.05, 3), st.floats(0.01, 3), st.sampled_from([50, 500, 2_000])
)


@pytest.mark.long
@given(LATE_STREAMS, st.sampled_from([0.001, 0.01, 0.05]), st.sampled_from([10_000, 200_000, 2_000_000]))
def test_is_never_later_than_k_slack_once_it_has_learned(stream, budget, pane):
    seed, shape, scale, batch = stream
    event = heavy_tailed(10_000, shape, scale, np.random.default_rng(seed))
    found, kslack = (states(policy, event, batch, pane) for policy in (AqKSlack(budget), KSlack()))
    before = None
    for state, patient in zip(found, kslack, strict=True):
        assert state.slack <= state.longest == patient.slack
        assert state.patient <= patient.punctuation
        assert state.unavoidable <= patient.dropped  # what it drops while the other learns
        if state.learns:
            assert before is None or state.punctuation == before.punctuation
        else:
            assert state.punctuation >= state.patient
        if before is not None and not state.learns:  # so nothing is held for longer than the longest delay really seen
            assert state.newest - state.punctuation <= max(patient.slack, before.newest - before.punctuation)
        before = state


def test_debt_is_paid_back_by_waiting_longer_not_by_stalling():
    calm, storm = even(30_000, 10, 0), even(15_000, 2, 3 * SECOND) + 30_000 * 1_000
    found = list(states(AqKSlack(0.02), np.concatenate([calm, storm]), 500, 100_000))
    broke = [state for state in found if state.dropped > 0.02 * state.seen]
    assert broke
    assert max(state.newest - state.punctuation for state in broke) <= 3 * SECOND
    assert broke[-1].punctuation > broke[0].punctuation


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0, 40])
def test_one_silent_source_of_seven_that_delivers_at_once_or_in_a_third_of_its_silence_silences_nothing(seconds):
    rng = np.random.default_rng(5)
    event = np.cumsum(rng.exponential(10_000, 120_000))
    arrival = event + rng.exponential(SECOND, len(event))
    start = event[60_000]
    silent = (rng.integers(0, 7, len(event)) == 0) & (event >= start) & (event < start + 120 * SECOND)
    arrival[silent] = start + 120 * SECOND + (event[silent] - start) * seconds / 120
    event = event[np.argsort(arrival, kind="stable")].astype(np.int64)
    for budget in (0.001, 0.01, 0.05):
        found = list(states(AqKSlack(budget), event, 200, SECOND))
        held = max(state.newest - state.punctuation for state in found if state.seen > 20_000)
        assert held < (60 if seconds else 20) * SECOND, (
            "what came too late for anything is no reason to wait; K-slack waits 120 s from then on"
        )
        assert found[-1].longest > 100 * SECOND


@pytest.mark.parametrize("batch", [100, 1_000])
def test_a_backlog_that_nothing_could_have_saved_delays_no_later_window(batch):
    """Live rows a millisecond apart; after 30 s nine rows of ten are from another source, which replays the last half."""
    calm = even(30_000, 50, SECOND // 10)
    replay = np.repeat(np.arange(15_000, 30_000, dtype=np.int64) * 1_000, 3)
    live = even(40_000, 50, SECOND // 10) + 30_000 * 1_000
    both = np.concatenate([np.insert(replay, np.arange(0, 45_000, 9), live[:5_000]), live[5_000:]])
    found = list(states(AqKSlack(0.03), np.concatenate([calm, both]), batch, 100_000))
    assert found[-1].dropped > 30_000
    assert found[-1].longest > 10 * SECOND
    assert all(state.credit >= -50 for state in found), "half a reserve"
    assert all(state.slack < SECOND for state in found[-20_000 // batch :])


def test_rows_that_are_held_back_are_waited_for_before_k_slack_has_caught_up():
    """Three rows in a hundred are a minute late: K-slack drops those of a minute, this policy those of half a minute more."""
    rng = np.random.default_rng(1)
    event = np.cumsum(rng.exponential(10_000, 20_000))
    held_back = 60 * SECOND * (rng.random(len(event)) < 0.03)
    event = in_order_of_arrival(event, rng.exponential(SECOND / 10, len(event)) + held_back)
    *_, last = states(AqKSlack(0.01), event, 200, SECOND // 2)
    assert last.unavoidable > 150
    assert last.dropped - last.unavoidable <= 0.01 * last.seen


def test_a_policy_continues_after_a_storm_and_is_within_the_budget_again():
    storm = even(5_000, 2, 3 * SECOND) + 30_000 * 1_000
    after = even(200_000, 10, 0) + 35_000 * 1_000
    event = np.concatenate([even(30_000, 10, 0), storm, after])
    *_, last = states(AqKSlack(0.02), event, 500, 100_000)
    assert last.dropped <= 0.02 * last.seen
    assert last.newest - last.punctuation < SECOND


def test_a_long_calm_does_not_buy_a_storm_in_which_all_is_dropped():
    calm = even(400_000, 10, 0)
    storm = even(20_000, 3, 3 * SECOND) + 400_000 * 1_000
    found = list(states(AqKSlack(0.02), np.concatenate([calm, storm]), 500, 100_000))
    start = found[len(calm) // 500 - 1]
    assert start.seen * 0.02 - start.dropped > 7_000  # what was never spent would pay for all of it
    assert start.credit <= 200, "two reserves"
    assert found[-1].dropped - start.dropped < 0.1 * len(storm)
    assert found[-1].slack > 2 * SECOND


def test_delays_ten_times_as_long_are_followed_and_the_debt_is_paid_back():
    rng = np.random.default_rng(6)
    event = np.cumsum(rng.exponential(10_000, 300_000))
    delay = rng.exponential(SECOND, len(event))
    delay[60_000:] *= 10
    found = list(states(AqKSlack(0.02), in_order_of_arrival(event, delay), 500, SECOND))
    worst = max(state.dropped - 0.02 * state.seen for state in found)
    assert worst < 600, "rows, of which 230 were later than any before them"
    assert found[-1].dropped <= 0.02 * found[-1].seen


def test_delays_a_tenth_as_long_are_followed():
    rng = np.random.default_rng(6)
    event = np.cumsum(rng.exponential(10_000, 200_000))
    delay = 10 * rng.exponential(SECOND, len(event))
    delay[50_000:] /= 10
    *_, last = states(AqKSlack(0.05), in_order_of_arrival(event, delay), 500, SECOND)
    assert last.slack < 4 * SECOND, "3 s hold back one row in twenty, 30 s were needed before"


def test_a_budget_that_cannot_be_kept_does_not_stop_progress():
    event = even(60_000, late_every=10, delay=10 * SECOND)
    *_, last = states(AqKSlack(0.02, max_slack="2 seconds"), event, 500, 100_000)
    assert last.slack <= 2 * SECOND
    assert last.punctuation >= last.newest - 2 * SECOND


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("shape", [1.2, 2.0, 3.0])
@pytest.mark.parametrize(("budget", "pane"), [(0.02, 10_000), (0.05, 200_000)])
def test_chooses_to_drop_no_more_than_its_budget_on_heavy_tailed_streams(seed, shape, budget, pane):
    """What K-slack drops as well is beyond any policy that is never later than it."""
    event = heavy_tailed(40_000, shape, 0.1, np.random.default_rng(seed))
    judged = 0
    for state in states(AqKSlack(budget), event, 200, pane):
        if state.seen >= 100 / budget and state.newest - state.since >= 8 * (pane + state.slack):  # warm-up is over
            judged += 1
            assert state.dropped - state.unavoidable <= budget * state.seen
    assert judged > 50


@pytest.mark.long
@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("batch", [50, 500])
def test_is_as_good_as_the_best_fixed_delay_in_hindsight(budget, batch):
    """The punctuation lies behind the newest time as far as that of a fixed delay that drops as many."""
    event = heavy_tailed(100_000, shape=1.2, scale=0.1, rng=np.random.default_rng(7))
    found = list(states(AqKSlack(budget), event, batch, 200_000))
    late = found[len(found) // 5 :]
    dropped = late[-1].dropped - late[0].dropped
    distances = np.sort(distances_of(event, batch, 200_000)[batch * (len(found) // 5 + 1) :])
    best = distances[-dropped - 1] + 1
    waited = np.array([state.newest - state.punctuation for state in late])
    assert waited.mean() <= 1.08 * best
    assert np.quantile(waited, 0.99) <= 1.2 * best
    assert 0.8 * budget < late[-1].dropped / late[-1].seen <= budget


def distances_of(event, batch, pane):
    """How far the end of each row's pane lies behind the newest time before its batch."""
    newest = np.maximum.accumulate(event)
    first = np.arange(len(event)) // batch * batch
    return np.where(first > 0, newest[first - 1], -(2**60)) - (event // pane + 1) * pane


@given(st.lists(st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=8), min_size=1, max_size=20))
def test_state_is_bounded(stream):
    for state in steps(AqKSlack(0.05, max_ahead=None), stream):
        for memory in (state.long, state.short):
            assert max(len(memory.dropped), len(memory.squares), len(memory.block)) <= len(EDGES)


def test_a_line_explains_why_it_waits():
    policy = AqKSlack(0.02)
    found = list(states(policy, even(60_000, 25, SECOND), 500, 100_000))
    assert policy.explain(policy.init()) == "no row has come yet"
    assert policy.explain(found[2]) == (
        "999 ms, the longest delay seen, as K-slack; 1.4 % may be dropped, the credit is -16 rows; "
        "of 36 dropped 36 were later than any before them"
    )
    assert "of the rows remembered; " in policy.explain(found[-1])
    assert set(policy.figures(found[-1])) == {"share", "credit", "would_drop", "longest", "unavoidable"}


def test_names_the_source_that_lags():
    policy = AqKSlack(0.02)
    state = policy.init()
    for at, late in ((0, 0), (10 * SECOND, 6)):
        batch = PaneArrivals.at_once([at] * 10, Windows(SECOND, SECOND))
        sources = {"meter 3": SourceCount(8, late, at), "meter 4": SourceCount(2, late // 3, at)}
        state = policy.decide(state, replace(batch, sources=sources))[0]
    assert policy.explain(state).endswith("; most late rows are from meter 3")


NOW = 1_772_323_200 * SECOND
YEAR_1, YEAR_9999 = -62_135_596_800 * SECOND, 253_402_300_799 * SECOND


@pytest.mark.parametrize(("wrong", "now"), [(0, NOW), (YEAR_1, NOW), (YEAR_1, YEAR_9999 - 9_000 * SECOND)])
@pytest.mark.parametrize("max_slack", ["1 day", None])
def test_one_row_of_any_year_is_late_and_the_policy_continues(wrong, now, max_slack):
    """The third minute has a row with a wrong clock; a row a second, one in ten late by five."""
    times = now + np.arange(6_000, dtype=np.int64) * SECOND - np.where(np.arange(6_000) % 10 == 0, 5 * SECOND, 0)
    times[150] = wrong
    policy = AqKSlack(0.05, max_slack=max_slack)
    *_, last = states(policy, times, 60, SECOND)
    assert last.newest == times.max()
    assert 1 <= last.dropped <= 0.06 * len(times)
    assert last.slack < 10 * SECOND
    assert policy.restore(policy.snapshot(last)) == last
