"""Plans that answer a range of windows, against the plan that answers all; the window at which one takes over."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.changes.test_changes import streams

import skypane as sp
from skypane.operators.changes.first_windows import first_from, last_before, reached
from skypane.operators.changes.recorded_query import query_of
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.progress import KSlack, ProgressPolicy
from skypane.runtime import local
from skypane.windows import Windows

QUERIES: list[Query] = [
    sp.Skyline("x MIN, n MAX"),
    sp.Skyline("x MIN, n MAX", "key"),
    sp.Skyline(sp.low("x") & sp.high("n") & sp.around("z", 2)),
    sp.Skyline((sp.low("x") & sp.around("z", (1, 2.5))) * sp.high("n") * sp.diff("text"), "key"),
    sp.Skyline(sp.around("day", date(2020, 1, 2)) * sp.around("at", datetime(2020, 1, 2, 3, tzinfo=UTC))),
    sp.KDominant(1, "x MIN, n MAX", "key"),
    sp.TopDelta(2, "x MIN, n MAX"),
    sp.TopK(2, "2 * x - n", "key"),
    sp.TopK(1, "n", largest=False),
    sp.Aggregate("key", rows=sp.count(), total=sp.sum("n"), words=sp.count_distinct("text")),
    sp.Aggregate(high=sp.count_if("x > 2"), listed=sp.collect_list("text", order="n"), having="high > 0"),
    sp.Aggregate(("key", "text"), rows=sp.count(), top=3, rank_by="rows", required="x"),
]
WINDOWS = st.builds(
    lambda slide, more, offset: Windows(slide + more, slide, offset),
    st.integers(1, 6),
    st.integers(0, 9),
    st.integers(-9, 9),
)
POLICIES: list[ProgressPolicy] = [KSlack(max_ahead=None), KSlack(max_ahead="10 us", patience=4), sp.Watermark("3 us")]


def by_window(plan: Plan, events: list[Any]) -> list[tuple[int, Counter[str]]]:
    """Return the windows in the order of their answers, which are those of the definition."""
    return [(answer.window, Counter(map(repr, answer.rows.to_pylist()))) for answer in local.answers(plan, events)]


@given(streams(), WINDOWS, st.sampled_from(POLICIES), st.integers(-3, 12), st.integers(1, 9), st.booleans())
def test_a_plan_with_a_range_of_windows_answers_these_as_the_plan_without_one(
    batches: list[pa.Table], windows: Windows, policy: ProgressPolicy, first: int, more: int, drain: bool
):
    plan = Plan(sp.Aggregate("key", rows=sp.count(), total=sp.sum("n")), windows, "time", policy)
    events = [*batches, local.Drain()] if drain else batches
    answered = by_window(plan, events)
    for begin, stop in ((first, None), (None, first), (first, first + more)):
        expected = [
            (window, rows)
            for window, rows in answered
            if (begin is None or begin <= window) and (stop is None or window < stop)
        ]
        assert by_window(replace(plan, first=begin, stop=stop), events) == expected


@given(WINDOWS, WINDOWS, st.sets(st.integers(-20, 20), min_size=1), st.none() | st.integers(-50, 50))
def test_the_first_window_of_a_query_that_takes_over_is_the_first_without_a_row_that_was_read(
    earlier: Windows, new: Windows, panes: set[int], punctuation: int | None
):
    until = reached(earlier, panes, punctuation)
    assert until is not None
    first = first_from(new, until)
    begin = new.bounds(first)[0]
    read = [earlier.pane_end(pane) - 1 for pane in panes] + ([] if punctuation is None else [punctuation - 1])
    assert all(time < begin for time in read), "no window from the first one on holds a row that was read"
    assert any(time >= begin - new.slide for time in read), "the window before it may hold one"
    last = last_before(earlier, begin)
    assert earlier.bounds(last)[0] < begin <= earlier.bounds(last + 1)[0]


def test_nothing_is_reached_without_rows():
    assert reached(Windows(10, 5), [], None) is None


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_recorded_query_is_runnable_again(query: Query):
    recorded = json.loads(json.dumps(query.describe()))
    again = query_of(recorded, sp.Skyline("x MIN"))
    assert type(again) is type(query)
    assert again.describe() == query.describe()
    assert {*again.required} == {*query.required}


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        ({"query": "count_by_sensor"}, "'count_by_sensor', can be run only by its own code"),
        ({"levels": []}, "None, can be run only by its own code"),
        ({"query": "top_k", "k": 0, "score": "x", "by": [], "largest": True}, "need a whole k >= 1, got k=0"),
        ({"query": "top_k", "k": 1}, "'score'"),
        (
            {"query": "top_k", "k": 1, "score": "x", "by": [], "largest": True, "ties": "first"},
            "was recorded by another version of skypane",
        ),
    ],
)
def test_a_query_that_cannot_be_built_from_its_record_is_refused(recorded: dict[str, Any], why: str):
    with pytest.raises(sp.ConfigError, match=why):
        query_of(recorded, sp.Skyline("x MIN"))
