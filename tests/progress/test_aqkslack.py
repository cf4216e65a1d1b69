from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import heavy_tailed, steps

from skypane.progress import AqKSlack, Arrivals, KSlack
from skypane.progress.recent import EDGES
from skypane.types import CheckpointError, ConfigError

DAY = 86_400_000_000
SECOND = 1_000_000


def states(policy, event, batch, pane):
    state = policy.init()
    for start in range(0, len(event), batch):
        state = policy.step(state, Arrivals.of_times(event[start : start + batch], pane))
        yield state


def even(rows, late_every, delay):
    """A tuple per millisecond, every n-th of them late by `delay`."""
    event = np.arange(rows, dtype=np.int64) * 1_000
    event[::late_every] -= delay
    return event


def test_worked_by_hand():
    # Two rows in a hundred are 5 s late; a budget of 10 % need not wait for them, one of 1 % must.
    event = even(100_000, late_every=50, delay=5 * SECOND)
    *_, generous = states(AqKSlack(0.10), event, batch=100, pane=100_000)
    *_, strict = states(AqKSlack(0.01), event, batch=100, pane=100_000)
    assert generous.slack == 0
    assert generous.dropped == pytest.approx(0.02 * generous.seen, rel=0.2)
    # Most of them end 4.9 to 5 s behind; batch by batch a few microseconds of the pane decide.
    assert 4.5 * SECOND <= strict.slack <= 5.5 * SECOND
    assert strict.dropped <= 0.01 * strict.seen


def test_waits_until_the_stream_was_watched_for_four_cycles():
    found = list(states(AqKSlack(0.05), even(4_000, 10, 0), batch=100, pane=200_000))
    held = [state for state in found if state.slack == DAY]
    # Newest time 0.099 s after the first batch; 4 * (0.2 s + 0) later is 0.899 s.
    assert held[-1].newest == 799_000
    assert found[len(held)].slack == 0
    assert found[0].punctuation == found[0].newest - DAY


def test_stands_still_while_there_is_no_credit():
    calm, storm = even(30_000, 10, 0), even(5_000, 2, 3 * SECOND) + 30_000 * 1_000
    found = list(states(AqKSlack(0.02), np.concatenate([calm, storm]), batch=500, pane=100_000))
    broke = [state for state in found if state.dropped > 0.02 * state.seen]
    assert broke
    assert {state.slack for state in broke} == {DAY}
    assert len({state.punctuation for state in broke}) == 1


def test_goes_on_after_a_storm_and_is_within_the_budget_again():
    storm = even(5_000, 2, 3 * SECOND) + 30_000 * 1_000
    after = even(200_000, 10, 0) + 35_000 * 1_000
    event = np.concatenate([even(30_000, 10, 0), storm, after])
    found = list(states(AqKSlack(0.02), event, batch=500, pane=100_000))
    assert found[-1].dropped <= 0.02 * found[-1].seen
    assert found[-1].newest - found[-1].punctuation < SECOND


def test_a_long_calm_does_not_buy_a_storm_in_which_all_is_dropped():
    calm = even(400_000, 10, 0)
    storm = even(20_000, 3, 3 * SECOND) + 400_000 * 1_000
    policy = AqKSlack(0.02)
    found = list(states(policy, np.concatenate([calm, storm]), batch=500, pane=100_000))
    start = found[len(calm) // 500 - 1]
    assert start.seen * 0.02 - start.dropped > 7_000  # the credit would pay for all of it
    assert found[-1].dropped - start.dropped < 0.1 * len(storm)
    assert found[-1].slack > 2 * SECOND


def test_a_budget_that_cannot_be_kept_does_not_stop_progress():
    event = even(60_000, late_every=10, delay=10 * SECOND)
    policy = AqKSlack(0.02, max_slack="2 seconds")
    found = list(states(policy, event, batch=500, pane=100_000))
    assert found[-1].slack == 2 * SECOND
    assert found[-1].punctuation == found[-1].newest - 2 * SECOND


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.floats(0.7, 3),
    scale=st.floats(0.01, 3),
    budget=st.sampled_from([0.02, 0.05, 0.1]),
    batch=st.sampled_from([100, 500]),
    pane=st.sampled_from([10_000, 200_000, 2_000_000]),
)
def test_keeps_its_budget_on_heavy_tailed_streams(seed, shape, scale, budget, batch, pane):
    policy = AqKSlack(budget)
    event = heavy_tailed(int(600 / budget), shape, scale, np.random.default_rng(seed))
    for state in states(policy, event, batch, pane):
        if state.seen >= policy.reserve / budget:
            assert state.dropped <= budget * state.seen


@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
def test_waits_less_than_k_slack_and_uses_its_budget(budget):
    event = heavy_tailed(100_000, shape=1.2, scale=0.1, rng=np.random.default_rng(7))
    *_, adaptive = states(AqKSlack(budget), event, batch=500, pane=200_000)
    *_, reference = states(KSlack(), event, batch=500, pane=200_000)
    assert adaptive.newest - adaptive.punctuation < (reference.newest - reference.punctuation) / 5
    assert 0.8 * budget < adaptive.dropped / adaptive.seen <= budget


@given(st.lists(st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=8), min_size=1, max_size=20))
def test_state_is_bounded(stream):
    for state in steps(AqKSlack(0.05, max_ahead=None), stream):
        assert len(state.recent.late) <= len(EDGES)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ConfigError, match="max_drop"):
        AqKSlack(share)


def test_other_fields_are_checked():
    with pytest.raises(ConfigError, match=r"reserve.*0"):
        AqKSlack(0.1, reserve=0)
    with pytest.raises(ConfigError, match="max_slack"):
        AqKSlack(0.1, max_slack="-1 hour")
    with pytest.raises(ConfigError, match="max_slack"):
        AqKSlack(0.1, max_slack=None)  # type: ignore[arg-type]
    assert AqKSlack(0.1).drop_budget == 0.1


def test_every_field_of_a_snapshot_is_checked():
    policy = AqKSlack(0.1)
    with pytest.raises(CheckpointError, match="since"):
        policy.restore({**policy.init().snapshot(), "since": "yesterday"})
