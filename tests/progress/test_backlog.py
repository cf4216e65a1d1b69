"""AqKSlack while an input is known to be behind: rows that are late because of that are judged apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skypane.progress import AqKSlack, PaneArrivals
from skypane.progress.aqkslack import AdaptiveProgress
from skypane.windows import Windows

SECOND = 1_000_000
PANES = Windows(10 * SECOND, 10 * SECOND)
DAY = 86_400 * SECOND


def batch(times: Sequence[int], since: int | None) -> PaneArrivals:
    return replace(PaneArrivals.at_once(times, PANES), waiting_since=since)


def live(rng: np.random.Generator, first: int, rows: int = 500) -> np.ndarray:
    """Ten rows a second, 5 % of them up to 20 s late."""
    late = (rng.random(rows) < 0.05) * rng.integers(0, 20 * SECOND, rows)
    return DAY + np.arange(first, first + rows) * SECOND // 10 - late


def run(*, known: bool, replayed: int = 70) -> list[AdaptiveProgress]:
    """A live stream; then an input joins that is an hour behind and is read beside it, two rows of three; then live again."""
    rng, policy = np.random.default_rng(5), AqKSlack(0.01)
    state, states, place = policy.init(), [], 50_000
    for number in range(200):
        times, since = live(rng, number * 500), None
        if 100 <= number < 100 + replayed:
            since = DAY - 3_600 * SECOND + place * SECOND // 10 if known else None
            times, place = np.concatenate([times, live(rng, place, 1000) - 3_600 * SECOND]), place + 1000
        state, _ = policy.decide(state, batch(times.tolist(), since))
        states.append(state)
    return states


def test_an_input_that_is_behind_does_not_raise_the_slack():
    known, unknown = run(known=True), run(known=False)
    assert known[-1].longest <= 100 * SECOND, "the time that a batch reads of the input that is behind"
    assert max(state.slack for state in known[20:]) < 30 * SECOND
    assert unknown[-1].longest > 1_500 * SECOND
    assert max(state.slack for state in unknown[20:]) > 1_500 * SECOND


def test_its_rows_are_counted_apart_and_leave_no_debt():
    states = run(known=True)
    before, after = states[99], states[169]
    assert after.unavoidable - before.unavoidable >= 70_000 - 1_000
    assert all(state.credit >= -50 for state in states[99:]), "half a reserve"
    assert min(state.credit for state in run(known=False)) < -10_000
    assert states[-1].dropped - states[-1].unavoidable <= 0.01 * states[-1].seen


def test_a_clock_that_is_behind_for_good_does_not_keep_the_policy_from_learning():
    """One row in 20 has a clock that is an hour behind, and the stream never catches up; 5 % of the others are late."""
    rng, policy = np.random.default_rng(6), AqKSlack(0.01)
    state, late = policy.init(), 0
    for number in range(400):
        times = live(rng, number * 50, 50)
        behind = DAY - 3_600 * SECOND + number * 5 * SECOND
        before = state.punctuation or 0
        if number > 100:
            late += int(((times // (10 * SECOND) + 1) * 10 * SECOND <= before).sum())
        state, _ = policy.decide(state, batch([*times.tolist(), behind, behind], behind if number else None))
    assert 10 * SECOND < state.longest <= 1_800 * SECOND
    assert late < 0.02 * 300 * 50
    assert state.unavoidable > 700


TIMES = st.lists(st.lists(st.integers(0, 500 * SECOND), min_size=1, max_size=30), min_size=1, max_size=12)


@given(batches=TIMES, ahead=st.integers(0, 100 * SECOND))
def test_inputs_that_are_level_change_nothing(batches: list[list[int]], ahead: int):
    """An input is level if it begins no further back than the longest delay: what is late then is late in the stream."""
    policy = AqKSlack(0.1)
    state = policy.init()
    for times in batches:
        newest = state.newest
        since = None if newest is None else newest - state.longest + ahead
        after, decision = policy.decide(state, batch(times, since))
        assert (after, decision) == policy.decide(state, batch(times, None))
        state = after


@given(batches=TIMES, lag=st.integers(0, 600 * SECOND))
def test_the_slack_is_never_longer_than_without_the_report(batches: list[list[int]], lag: int):
    policy = AqKSlack(0.1)
    state, without = policy.init(), policy.init()
    for times in batches:
        since = None if state.newest is None else state.newest - lag
        state, _ = policy.decide(state, batch(times, since))
        without, _ = policy.decide(without, batch(times, None))
        assert state.longest <= without.longest
        assert state.slack <= state.longest
        assert state.unavoidable <= state.dropped
        assert state.seen == without.seen or state.held.panes or without.held.panes
