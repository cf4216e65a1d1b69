"""What the order of the rows within a batch changes: a batch costs no more than the same rows in smaller ones."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import PANES, batches

from skypane.operators.advance import Reading, advance
from skypane.operators.entry.pane_counts import counts_of
from skypane.operators.entry.row_runs import ReadingOrder, RunRecorder, in_order
from skypane.progress import AqKSlack, KSlack, PaneArrivals, Watermark
from skypane.progress.kslack import tuple_grain
from skypane.progress.pane_arrivals import UnitEnd
from skypane.windows import Windows

SECOND = 1_000_000
WINDOWS = Windows.of("5 seconds", "1 second")


def played(policy, parts, windows=PANES):
    """Yield the step after each batch, given as arrays of times, each of a partition, that are read side by side."""
    state = policy.init()
    for part in parts:
        units = [np.asarray(times, np.int64) for times in part]
        times = np.concatenate(units)
        recorder = RunRecorder()
        recorder.add(windows.panes_at(times), times, np.repeat(np.arange(len(units)), [len(one) for one in units]))
        order = in_order(recorder.units() or (), {})
        assert order is not None
        counts = list(counts_of(windows.panes_at(times), times))
        step = advance(
            policy, windows, state, counts, reading=Reading(order=partial(ReadingOrder, order.runs, order.ends))
        )
        state = step.state
        yield step


def last(policy, parts, windows=PANES):
    *_, step = played(policy, parts, windows)
    return step.state


def cut(times, edges):
    """The times in batches of one partition each."""
    return [[times[first:end]] for first, end in pairwise([0, *edges, len(times)])]


def dropped_by_the_paper(times, edges, leap):
    """Rows that come after the paper's punctuation has closed their pane, in batches that are admitted as a whole.

    leap   whether the punctuation is moved on by the largest step of the newest time so far
    """
    given_out = list(tuple_grain(times))
    steps = np.diff(np.maximum.accumulate(times), prepend=times[0])
    leaps = np.maximum.accumulate(steps) if leap else np.zeros(len(times), np.int64)
    return sum(
        PaneArrivals.of_times(times[first:end], PANES).late(given_out[first - 1] + int(leaps[first - 1]))
        for first, end in pairwise([*edges, len(times)])
    )


CUTS = st.lists(st.integers(1, 140), max_size=12)


@given(batches(), CUTS)
def test_k_slack_drops_no_more_than_row_by_row_for_any_cut(stream, edges):
    times = [time for batch in stream for time in batch]
    edges = sorted({edge for edge in edges if edge < len(times)})
    for policy in (KSlack(), KSlack(max_ahead=None)):
        assert last(policy, cut(times, edges)).dropped <= last(policy, [[[time]] for time in times]).dropped


@given(batches(), CUTS)
def test_k_slack_drops_no_more_than_the_papers_except_for_the_largest_step_of_the_newest_time(stream, edges):
    """The paper measures a delay behind the next newest time, and this policy behind the one before."""
    times = [time for batch in stream for time in batch]
    edges = sorted({edge for edge in edges if edge < len(times)})
    state = last(KSlack(max_ahead=None), cut(times, edges))
    assert state.dropped <= dropped_by_the_paper(times, edges, leap=True)


@given(batches(), CUTS)
def test_delays_within_a_batch_count_as_those_behind_earlier_batches(stream, edges):
    times = [time for batch in stream for time in batch]
    edges = sorted({edge for edge in edges if edge < len(times)})
    policy = KSlack(max_ahead=None)
    whole = last(policy, cut(times, edges))
    assert whole.slack == last(policy, [[[time]] for time in times]).slack


def test_worked_by_hand():
    # newest before:           -     1012 1030  1030 1030
    # in one batch, a row is:  1000, 1012, 1030, 1001 (29 behind), 1025 (5 behind)
    (step,) = played(KSlack(), [[[1_000, 1_012, 1_030, 1_001, 1_025]]])
    assert (step.state.slack, step.state.punctuation) == (29, 1_001)
    assert step.by_order


def reordered(seed, rows=28_800, rate=240):
    """Rows at a steady rate: 40 % are 1.5 s late in the mean, and 1.2 % from 5 to 20 s."""
    rng = np.random.default_rng(seed)
    chance = rng.random(rows)
    late = np.where(chance < 0.6, 0.0, np.where(chance < 0.988, rng.exponential(1.5, rows), rng.uniform(5, 20, rows)))
    return ((1_000 + np.arange(rows) / rate - late) * SECOND).astype(np.int64)


@pytest.mark.parametrize("seconds", [1, 5, 20, 60])
def test_the_first_batches_of_a_backlog_keep_the_budget(seconds):
    times = reordered(seconds)
    edges = range(seconds * 240, len(times), seconds * 240)
    parts = cut(times, edges)
    assert last(KSlack(), parts, WINDOWS).dropped <= 2
    for step in played(AqKSlack(0.01), parts, WINDOWS):
        assert step.state.dropped <= max(10, 0.012 * step.state.seen)


@pytest.mark.parametrize("partitions", [4, 16])
def test_partitions_of_a_backlog_that_progress_unequally_keep_the_budget(partitions):
    """The fastest is read twice as fast as the slowest, in its own order."""
    times, rng = reordered(3), np.random.default_rng(4)
    home = rng.integers(0, partitions, len(times))
    own = [times[home == number] for number in range(partitions)]
    taken = [int(2_000 / partitions * (1 - number / partitions / 2)) for number in range(partitions)]
    parts = [
        [times[batch * size : (batch + 1) * size] for times, size in zip(own, taken, strict=True)]
        for batch in range(10)
    ]
    for policy in (KSlack(), AqKSlack(0.01)):
        state = last(policy, parts, WINDOWS)
        assert state.dropped <= 0.012 * state.seen


def test_after_an_outage_whose_rows_come_at_once_the_budget_is_kept():
    times = reordered(5, rows=60_000)
    edges = [*range(240, 12_000, 240), *range(48_000, 60_000, 240)]  # 150 s in one batch
    state = last(AqKSlack(0.01), cut(times, edges), WINDOWS)
    assert state.dropped <= 0.012 * state.seen


def test_where_the_order_of_the_first_batch_is_not_known_nothing_is_closed():
    """With the second batch delays are known: 10 is 20 behind."""
    reading = Reading(order=lambda: None)
    state: Any = KSlack().init()
    for times, slack, punctuation in (([5, 30], 0, None), ([10, 60], 20, 40)):
        counts = list(counts_of(np.array(times) // PANES.slide, np.array(times)))
        step = advance(KSlack(), PANES, state, counts, reading=reading)
        state = step.state
        assert (state.slack, state.punctuation, state.dropped) == (slack, punctuation, 0)
    assert not step.by_order


def test_a_policy_that_does_not_ask_gets_no_order():
    def refuse():
        raise AssertionError("not asked for")

    counts = list(counts_of(np.array([0, 1]), np.array([5, 15])))
    watermark = Watermark("0 seconds")
    reading = Reading(order=refuse)
    assert advance(watermark, PANES, watermark.init(), counts, reading=reading).state.punctuation == 15
    known = replace(KSlack().init(), newest=100, punctuation=50, slack=50)
    assert advance(KSlack(), PANES, known, counts, reading=reading).state.slack == 95


def test_it_learns_until_enough_rows_have_come_to_judge_the_budget_by():
    policy, times = AqKSlack(0.01), reordered(6)
    steps = list(played(policy, cut(times, range(100, 2_000, 100))[:-1], WINDOWS))
    assert [step.state.punctuation for step in steps[:9]] == [None] * 9
    assert steps[3].decision.because == "learning: 400 of 1,000 rows by which the budget is judged"
    assert steps[9].state.punctuation == steps[9].state.newest - steps[9].state.longest


def test_it_does_not_learn_from_rows_in_order():
    (step,) = played(AqKSlack(0.01), [[range(100)]])
    assert step.state.punctuation == 99


def test_it_does_not_learn_forever_if_few_rows_come():
    times = [time for start in range(0, 4_000, 40) for time in (start + 30, start)]
    *_, step = played(AqKSlack(0.001), cut(times, range(2, len(times), 2)))
    assert step.state.seen < 10_000
    assert step.state.punctuation == step.state.newest - 30


def test_the_slowest_partitions_are_left_out_if_they_have_less_than_the_budget():
    arrivals = replace(PaneArrivals.none(), ends=(UnitEnd(1_000, 97), UnitEnd(10, 1), UnitEnd(400, 2)))
    assert [arrivals.lag(share) for share in (0.0, 0.01, 0.02, 0.03, 0.5)] == [990, 600, 600, 0, 0]
