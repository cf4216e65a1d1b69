"""Merged windows at their small size: each plan gives the answer of the window, and what is added up is its critical path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure.bench.merged_windows import (
    HEAD,
    OVERHEADS,
    QUICK,
    SUBJECTS,
    Case,
    Measured,
    Overhead,
    Window,
    alone,
    at_once,
    critical,
    from_size,
    in_pairs,
    in_two,
    least,
    lines_of,
    merged,
    ordered,
    pays,
    split,
    table_of,
    together,
)

NONE, THREADS, JOBS = OVERHEADS


@pytest.mark.long
def test_each_query_has_a_line():
    lines = list(lines_of(QUICK, dict.fromkeys(SUBJECTS, (20, 60))))
    assert [line[0] for line in lines] == list(SUBJECTS)
    assert all(len(line) == len(HEAD) for line in lines)


@given(st.sampled_from(sorted(SUBJECTS)), st.integers(1, 70), st.integers(0, 2**32 - 1), st.data())
def test_each_plan_gives_the_answer_of_the_window(name, count, seed, data):
    subject, rng = SUBJECTS[name], np.random.default_rng(seed)
    points = [rng.integers(0, 4, (int(rng.integers(0, 9)), subject.d)).astype(float) for _ in range(count)]
    expected = ordered(subject.query.lower(subject.query.lift(table_of(np.concatenate(points)))))
    plan = data.draw(st.sampled_from([at_once, in_pairs, in_two(2), in_two(16)]))
    rounds, answer = merged(subject.query, [subject.query.lift(table_of(some)) for some in points], plan)
    assert ordered(answer).equals(expected)
    assert len(rounds[-1]) == 1


@pytest.mark.parametrize(
    ("plan", "merges"),
    [(at_once, [1]), (in_two(2), [2, 1]), (in_two(16), [16, 1]), (in_pairs, [30, 15, 8, 4, 2, 1])],
)
def test_a_plan_has_so_many_merges_in_each_round(plan, merges):
    subject = SUBJECTS["top 1,000"]
    partials = [held.table for held in subject.partials(3, 60)]
    assert [len(seconds) for seconds in merged(subject.query, partials, plan)[0]] == merges


@given(st.lists(st.integers(), min_size=1), st.integers(1, 20))
def test_a_split_keeps_all_in_order_in_lists_of_about_equal_length(items, parts):
    lists = split(items, parts)
    lengths = [len(one) for one in lists]
    assert [item for one in lists for item in one] == items
    assert len(lists) == min(parts, len(items))
    assert 1 <= min(lengths) <= max(lengths) <= min(lengths) + 1


def test_the_critical_path_is_the_busiest_task_of_each_round():
    assert critical(((1.0, 2.0, 4.0, 3.0), (5.0,)), 2) == (7.0, 5.0)
    assert critical(((1.0, 2.0, 4.0, 3.0), (5.0,)), 16) == (4.0, 5.0)
    assert least([((1.0, 5.0), (2.0,)), ((3.0, 4.0), (1.0,))]) == ((1.0, 4.0), (1.0,))


def test_a_round_waits_for_the_slowest_window_and_the_last_one_may_be_in_the_driver():
    rounds = [(3.0, 1.0, 2.0), (1.0, 4.0, 3.0)]
    assert together(rounds, NONE) == 3.0 + 4.0 + 3.0
    assert together(rounds, Overhead(0.5, 0.0)) == 0.5 + 10.0
    assert together(rounds, Overhead(1.0, 1.0)) == 1.0 + 3.0 + 1.0 + 4.0 + 1.0 + 3.0
    assert together(rounds, Overhead(9.0, 9.0)) == 9.0 + 3.0 + 9.0 + 4.0 + 2.0 + 3.0


def of_seconds(whole: float, first: float, last: float) -> Window:
    """Return a window that takes so long at once, and in the rounds of two sets."""
    return Window(whole, {2: ((first, first), (last,))}, ((whole,), (whole,)))


def test_windows_at_once_are_in_tasks_or_in_the_driver():
    windows = [of_seconds(0.1, 0.1, 0.1), of_seconds(0.4, 0.1, 0.1)]
    assert alone(windows, NONE) == 0.4
    assert alone(windows, THREADS) == THREADS.first + 0.4
    assert alone(windows, Overhead(1.0, 1.0)) == 0.5


def test_merge_pays_where_it_saves_more_than_its_overhead_and_more_than_noise():
    case = Case("top 1,000", 5, 1, 4)
    saves_100_ms = Measured((of_seconds(0.3, 0.1, 0.1),), {1: 0.15}, 10)
    assert [pays(case, saves_100_ms, overhead, kept=False) for overhead in OVERHEADS] == [True, True, False]
    assert not any(pays(case, saves_100_ms, overhead, kept=True) for overhead in OVERHEADS)
    saves_300_ms = Measured((of_seconds(0.7, 0.2, 0.2),), {1: 0.7}, 10)
    assert [pays(case, saves_300_ms, overhead, kept=True) for overhead in OVERHEADS] == [True, True, True]
    less_than_noise = Measured((of_seconds(0.0015, 0.0005, 0.0004),), {1: 1.0}, 10)
    assert not pays(case, less_than_noise, NONE, kept=False)


def test_the_size_is_the_least_from_which_all_larger_ones_hold():
    assert from_size({10: True, 1_000: True, 100: False}) == "1,000"
    assert from_size({10: True, 1_000: True, 100: True}) == "10"
    assert from_size({10: True, 100: False}) == "no"
