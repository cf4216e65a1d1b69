"""AqKSlack with a budget of amended windows: worked by hand, against a definition, and on streams of many kinds."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.progress.streams import batches, heavy_tailed, in_order_of_arrival, states, steps

from skypane.progress import AqKSlack, KSlack, PaneArrivals
from skypane.progress.recent_windows import MOST
from skypane.windows import Windows

SECOND = 1_000_000
TUMBLING = Windows(SECOND, SECOND)
SLIDING = Windows(10 * SECOND, 2 * SECOND), Windows(5 * SECOND, 2 * SECOND)


def amended_by(found, event, batch, windows=TUMBLING):
    """Return the windows that a row came for after the punctuation had passed them, and all windows with a row."""
    amended, known = set(), set()
    for number, start in enumerate(range(0, len(event), batch)):
        panes = np.unique(windows.panes_at(event[start : start + batch]))
        touched = {window for pane in panes.tolist() for window in windows.windows_of(pane)}
        if number:
            passed = found[number - 1].punctuation
            amended |= {window for window in touched if windows.bounds(window)[1] <= passed}
        known |= touched
    return amended, known


NUMBERS = np.arange(15_000)
EVENT = NUMBERS * SECOND // 10
LATE_WINDOWS = in_order_of_arrival(EVENT, np.where(NUMBERS % 100 == 5, 5 * SECOND, 0))
"""Ten rows a second for 1,500 seconds, one of a hundred 5 s late, in one window of ten."""


@cache
def by_hand(policy):
    return list(states(policy, LATE_WINDOWS, 10))


def test_worked_by_hand():
    """A budget of 5 % waits for the late rows, one of 20 % does not."""
    *_, strict = found = by_hand(AqKSlack(max_amended=0.05))
    *_, generous = freely = by_hand(AqKSlack(max_amended=0.2))
    # Their windows end up to 4.4 s before the newest time, within one step of 9 %.
    assert 4.0 * SECOND <= strict.slack <= 5 * SECOND
    assert generous.slack == 0
    for last, run, most in ((strict, found, 0.05), (generous, freely, 0.12)):
        amended, windows = amended_by(run, LATE_WINDOWS, 10)
        assert len(amended) == last.windows.total
        assert len(amended) <= most * len(windows)
    assert generous.windows.total > 130
    # The budget of rows that are dropped would not wait: 1 % of the rows are late.
    *_, rows = by_hand(AqKSlack(0.02))
    assert rows.slack == 0


def test_a_window_that_many_late_rows_amend_counts_once():
    """Half of the rows of every 20th second are 5 s late: 2.5 % of the rows, 5 % of the windows."""
    event = in_order_of_arrival(EVENT, np.where(NUMBERS % 200 < 5, 5 * SECOND, 0))
    *_, last = found = list(states(AqKSlack(max_amended=0.1), event, 10))
    amended, windows = amended_by(found, event, 10)
    assert last.slack == 0
    assert len(amended) == last.windows.total == pytest.approx(0.05 * len(windows), rel=0.1)


@pytest.mark.long
@given(
    st.tuples(st.integers(0, 2**32 - 1), st.floats(1.05, 3), st.floats(0.01, 3), st.sampled_from([50, 500])),
    st.sampled_from([0.02, 0.05, 0.2]),
    st.sampled_from([Windows(SECOND // 10, SECOND // 10), Windows(SECOND // 4, SECOND // 10)]),
)
def test_is_never_later_than_k_slack(stream, budget, windows):
    seed, shape, scale, batch = stream
    event = heavy_tailed(10_000, shape, scale, np.random.default_rng(seed))
    found = states(AqKSlack(max_amended=budget), event, batch, windows)
    for state, patient in zip(found, states(KSlack(), event, batch, windows), strict=True):
        assert state.punctuation >= patient.punctuation
        assert (state.patient, state.longest) == (patient.punctuation, patient.slack)
        assert state.unavoidable == patient.dropped


@pytest.mark.long
@pytest.mark.parametrize("seed", slow_but([1], [1, 2, 3]))
@pytest.mark.parametrize("shape", [1.2, 2.0, 3.0])
@pytest.mark.parametrize("budget", [0.05, 0.2])
def test_chooses_to_amend_no_more_than_its_budget_on_heavy_tailed_streams(seed, shape, budget):
    """Windows that K-slack amends as well are beyond any policy that is never later than it."""
    windows = Windows(SECOND // 50, SECOND // 50)
    event = heavy_tailed(60_000, shape, 0.1, np.random.default_rng(seed))
    found = list(states(AqKSlack(max_amended=budget), event, 100, windows))
    amended, known = amended_by(found, event, 100, windows)
    last = found[-1]
    assert len(amended) <= last.windows.total <= 1.05 * len(amended)
    assert last.windows.total - last.windows.unavoidable <= budget * len(known)


@pytest.mark.parametrize("windows", slow_but(SLIDING[1:], [TUMBLING, *SLIDING]))
def test_the_budget_is_kept_and_spent_while_delays_do_not_change(windows):
    rng = np.random.default_rng(3)
    sent = np.cumsum(rng.exponential(0.1 * SECOND, 100_000))
    event = in_order_of_arrival(sent, rng.exponential(SECOND, len(sent)))
    for budget in (0.05, 0.2):
        found = list(states(AqKSlack(max_amended=budget), event, 50, windows))
        amended, known = amended_by(found, event, 50, windows)
        assert 0.6 * budget < len(amended) / len(known) <= budget
        waited = np.array([state.newest - state.punctuation for state in found[len(found) // 5 :]])
        assert waited.max() < found[-1].longest


@given(batches(max_batches=20), st.sampled_from([Windows(10, 10), Windows(35, 10), Windows(60, 15)]), st.data())
def test_a_restart_at_any_batch_decides_the_same(stream, windows, data):
    policy = AqKSlack(max_amended=0.3, reserve=1)
    at = data.draw(st.integers(0, len(stream)))
    state = other = policy.init()
    for number, times in enumerate(stream):
        if number == at:
            other = policy.restore(json.loads(json.dumps(policy.snapshot(other))))
        arrivals = PaneArrivals.at_once(times, windows)
        state, decision = policy.decide(state, arrivals)
        other, again = policy.decide(other, arrivals)
        assert (other, again) == (state, decision)


@given(st.lists(st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=8), min_size=1, max_size=20))
@example([[13_937_002], [0], [0, 20_905_503]])
def test_the_state_is_bounded(stream):
    """The example has a window with late rows before any window has passed."""
    for state in steps(AqKSlack(max_amended=0.05, max_ahead=None, max_slack=None), stream, TUMBLING):
        assert len(state.windows.number) <= MOST + 1


def test_the_state_is_small_after_a_long_stream():
    event = heavy_tailed(50_000, 1.2, 1.0, np.random.default_rng(1))
    policy = AqKSlack(max_amended=0.05)
    *_, last = states(policy, event, 100, Windows(SECOND // 2, SECOND // 100))
    assert len(json.dumps(policy.snapshot(last))) < 100_000


def test_windows_of_held_rows_that_a_drain_answers_count_for_nothing():
    policy = AqKSlack(max_amended=0.3, support=4)
    *_, state = states(policy, np.array([*range(0, 50 * SECOND, SECOND // 2), 10**13, 10**13]), 20)
    assert state.held.rows == 2
    settled = policy.settle(state)[0]
    assert settled.held.rows == 0
    assert settled.windows.total == state.windows.total


def test_budget_reserve_and_reason_are_those_of_windows():
    policy = AqKSlack(max_amended=0.05)
    assert (policy.amend_budget, policy.drop_budget, policy.reserve) == (0.05, None, 10)
    rows = AqKSlack(0.05)
    assert (rows.amend_budget, rows.drop_budget, rows.reserve) == (None, 0.05, 100)
    assert policy.describe() == AqKSlack(max_amended=0.05, reserve=10).describe()
    *_, last = by_hand(policy)
    line = policy.explain(last)
    assert "would have amended" in line
    assert "6 % may be amended, the credit is 20 windows" in line
    assert "of 1 amended 1 by rows later than any before them" in line
    assert "amended" in policy.figures(last)


def test_another_kind_of_budget_begins_its_memory_again():
    """Rows and windows cannot be added up; the longest delay and the punctuation remain."""
    rows, windows = AqKSlack(0.02), AqKSlack(max_amended=0.05)
    *_, before = by_hand(rows)
    after = windows.restore(rows.snapshot(before))
    assert (after.punctuation, after.newest, after.longest) == (before.punctuation, before.newest, before.longest)
    assert (after.of_windows, after.credit, after.long.total) == (True, 0, 0)
    assert rows.restore(rows.snapshot(before)) == before
    *_, counted = by_hand(windows)
    back = rows.restore(windows.snapshot(counted))
    assert (back.of_windows, back.long.total, len(back.windows.number)) == (False, 0, 0)
    assert windows.restore(windows.snapshot(counted)) == counted


def test_a_checkpoint_of_an_earlier_version_is_one_of_rows():
    policy = AqKSlack(0.02)
    *_, last = by_hand(policy)
    snapshot = policy.snapshot(last)
    del snapshot["of_windows"], snapshot["windows"]
    assert policy.restore(snapshot) == last
