"""The number of executors to request: against its definition, and what it costs beside knowing the future."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.executor_count import START_SECONDS, ExecutorCount, ExecutorNeed

STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=60)
"""Seconds since the decision before, and tasks that are to run at once."""


def timed(steps: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """Return the time of each decision, and its tasks."""
    now, decisions = 0.0, []
    for waited, tasks in steps:
        now += waited
        decisions.append((now, tasks))
    return decisions


def requested(decisions: list[tuple[float, int]], hold: float, slots: int = 1) -> list[int]:
    policy = ExecutorCount(hold)
    state, totals = policy.init(), []
    for now, tasks in decisions:
        state, decision = policy.decide(state, ExecutorNeed(tasks, slots, 0, now))
        totals.append(decision.value)
    return totals


def defined(decisions: list[tuple[float, int]], hold: float) -> list[int]:
    """Return the largest number that is needed now, or was until less than `hold` seconds ago."""
    spans = [(needed, end) for (_, needed), (end, _) in pairwise(decisions)]
    return [
        max([tasks, *(needed for needed, end in spans[:at] if end > now - hold)])
        for at, (now, tasks) in enumerate(decisions)
    ]


@given(STEPS, st.sampled_from([0.0, 1.0, 4.0, START_SECONDS, 1000.0]))
def test_the_largest_number_that_was_needed_lately_is_requested(steps: list[tuple[int, int]], hold: float):
    decisions = timed(steps)
    assert requested(decisions, hold) == defined(decisions, hold)


@given(STEPS, st.integers(1, 4))
def test_all_tasks_run_at_once_and_no_executor_is_requested_that_would_have_none(
    steps: list[tuple[int, int]], slots: int
):
    decisions = timed(steps)
    for total, (_, tasks) in zip(requested(decisions, 0.0, slots), decisions, strict=True):
        assert (total - 1) * slots < tasks <= total * slots


@given(st.lists(st.integers(1, 5), min_size=1, max_size=80))
def test_starts_and_held_executors_cost_at_most_twice_what_they_would_if_the_future_were_known(tasks: list[int]):
    """A decision a second. In a gap between two needs, an executor that is known to be needed again is held, or released
    and started again, whichever costs less; after its last need it is released."""
    decisions = [(float(at), needed) for at, needed in enumerate(tasks)]
    totals = requested(decisions, START_SECONDS)
    held = sum(total - needed for total, needed in zip(totals, tasks, strict=True))
    starts = sum(max(0, after - before) for before, after in pairwise([0, *totals]))
    known = 0.0
    for level in range(1, max(tasks) + 1):
        at = [second for second, needed in enumerate(tasks) if needed >= level]
        known += START_SECONDS + sum(min(later - before - 1.0, START_SECONDS) for before, later in pairwise(at))
    assert held + starts * START_SECONDS <= 2 * known


def test_the_reason_has_what_it_was_decided_from():
    policy = ExecutorCount(10.0)
    state, first = policy.decide(policy.init(), ExecutorNeed(8, 2, 1, now=0.0))
    assert (first.value, first.because) == (4, "8 tasks at once, 2 an executor: 4 executors; 1 there")
    state, _ = policy.decide(state, ExecutorNeed(8, 2, 4, now=5.0))
    state, held = policy.decide(state, ExecutorNeed(1, 2, 4, now=9.0))
    assert (held.value, held.because) == (
        4,
        "1 task at once, 2 an executor: 1 executor, 4 until 10 s after they were needed; 4 there",
    )
    _, less = policy.decide(state, ExecutorNeed(1, 2, 4, now=19.0))
    assert less.value == 1
    assert less.figures == {"needed": 1.0, "there": 4.0, "slots": 2.0}


@pytest.mark.parametrize(("tasks", "slots", "executors"), [(0, 1, 1), (1, 4, 1), (4, 4, 1), (5, 4, 2), (1000, 1, 1000)])
def test_the_smallest_number_that_runs_all_at_once(tasks: int, slots: int, executors: int):
    assert ExecutorNeed(tasks, slots, 0, 0.0).executors == executors
