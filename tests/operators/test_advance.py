from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import micros_of, table, tables, windows

from skypane.operators.advance import advance, drained, readmitted
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.progress import KSlack, ProgressPolicy, Watermark
from skypane.progress.far_future import FutureDecision
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.progress_policy import Punctuation
from skypane.windows import Windows

POLICIES = st.sampled_from(
    [
        Watermark("7 us"),
        Watermark("0 us", max_ahead="15 us", support=3, patience=4),
        KSlack(max_ahead="25 us"),
        KSlack(),
    ]
)


def counted(w: Windows, rows: pa.Table, first_open: int | None = None) -> tuple[PaneCount, ...]:
    return EntryRules(w, "time", (), first_open=first_open).split(rows).counts


@given(windows(), st.lists(tables(), max_size=6), POLICIES)
def test_the_policy_observes_every_time(w: Windows, batches: list[pa.Table], policy: ProgressPolicy):
    state = expected = policy.init()
    for rows in batches:
        first_open = None if state.punctuation is None else w.first_open(state.punctuation)
        step = advance(policy, w, state, counted(w, rows, first_open))

        times = [time for time in micros_of(rows) if time is not None]
        arrivals = PaneArrivals.at_once(times, w)
        expected, decision = policy.decide(expected, arrivals)
        future = decision.value.future
        panes = [w.pane_at(time) for time in times]
        beyond = [pane for pane in panes if future.limit is not None and w.pane_start(pane) > future.limit]

        assert step.state == expected
        assert step.decision == decision
        assert step.held == Counter(beyond)
        assert step.abandoned == {w.pane_at(pane.start) for pane in future.abandoned.panes}
        assert step.rejection.reasons.get(FUTURE, 0) == future.abandoned.rows
        state = step.state


@given(windows(), tables(), st.integers(0, 25), st.randoms(use_true_random=False))
def test_counts_may_come_in_parts_and_in_any_order(w: Windows, rows: pa.Table, cut: int, random: Random):
    policy = Watermark("5 us", max_ahead="20 us", support=3)
    parts = [*counted(w, rows.slice(0, cut)), *counted(w, rows.slice(min(cut, rows.num_rows)))]
    random.shuffle(parts)
    assert advance(policy, w, policy.init(), parts) == advance(policy, w, policy.init(), counted(w, rows))


def test_a_clock_in_the_future_is_held_moves_nothing_and_is_abandoned():
    w, policy = Windows(10, 10), Watermark("0 us", max_ahead="100 us", patience=2)
    state = advance(policy, w, policy.init(), counted(w, table([1, 12, 25]))).state
    step = advance(policy, w, state, counted(w, table([27, 9_005, 9_007])))
    assert step.held == {900: 2}
    assert step.rejection == Rejection()
    assert step.state.punctuation == 27
    assert step.state.seen == 4
    step = advance(policy, w, step.state, counted(w, table([28, 29, 9_008])))
    assert step.held == {900: 1}
    assert step.abandoned == {900}
    assert step.rejection.reasons == {FUTURE: 2}


def test_a_drain_closes_what_is_accepted_and_discards_the_rest():
    w, policy = Windows(10, 10), Watermark("0 us", max_ahead="100 us")
    before = advance(policy, w, policy.init(), counted(w, table([1, 12, 25, 9_005, 9_007]))).state
    panes = OpenPanes[str].empty(w).add((pane, "partial") for pane in (2, 900))
    step = drained(policy, before, panes)
    assert step.abandoned == {900}
    assert step.rejection.reasons == {FUTURE: 2}
    assert (step.state.punctuation, step.state.newest, step.state.seen, step.state.held.rows) == (30, 25, 3, 0)
    assert step.held == {}
    assert step.decision.value.time == 30
    assert drained(policy, step.state, OpenPanes[str].empty(w)).state == step.state


def test_without_a_bound_nothing_is_held():
    w, policy = Windows(10, 10), Watermark("0 us", max_ahead=None)
    step = advance(policy, w, policy.init(), counted(w, table([1, 10**15])))
    assert (step.held, step.decision.value) == ({}, Punctuation(10**15, FutureDecision(None)))


def test_no_rows_move_nothing():
    policy = KSlack()
    step = advance(policy, Windows(10, 10), policy.init(), ())
    assert step.state == policy.init()


def test_rows_that_come_a_second_time_move_nothing_and_are_judged_by_the_newest_time():
    w, policy = Windows(10, 10), Watermark("5 us")
    state = advance(policy, w, policy.init(), counted(w, table([1, 12, 25]))).state
    step = readmitted(state)
    assert step.state == state
    assert step.decision.value == Punctuation(20, FutureDecision(25))
    assert (step.held, step.abandoned, step.rejection) == ({}, frozenset(), Rejection())
