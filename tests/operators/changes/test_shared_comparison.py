"""Several queries that change, without Spark: what is added misses no row, what is removed has answered all its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.changes.test_changes import SCHEMA, Run

import skypane as sp
from skypane.operators.changes.comparison import OpenWindows, QueryChange
from skypane.operators.changes.shared_comparison import ReadSoFar, SharedPart, compare_several
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.progress import KSlack
from skypane.shared_plan import SharedPlan
from skypane.snapshots import through_json
from skypane.windows import Windows

SECOND = 1_000_000
BEST = sp.Skyline("x MIN, n MAX", by="key")
LOAD = sp.Aggregate("key", rows=sp.count(), total=sp.sum("n"))
WINDOWS = {
    "best": Windows(5 * SECOND, 2 * SECOND),
    "load": Windows(7 * SECOND, 7 * SECOND, SECOND),
    "more": Windows(4 * SECOND, 3 * SECOND),
}


def plan_of(queries: dict[str, Query]) -> SharedPlan:
    return SharedPlan({name: Plan(query, WINDOWS[name], "time", KSlack()) for name, query in queries.items()})


def change_of(before: dict[str, Query], after: dict[str, Query], runs: dict[str, Run] | None = None) -> QueryChange:
    """Return the change between queries over the same columns; without runs, before any row is read."""
    old, new = plan_of(before), plan_of(after)
    opened = {name: OpenWindows(WINDOWS[name]) if runs is None else runs[name].opened for name in before}
    parts = {
        name: SharedPart(
            one.query,
            pa.schema([SCHEMA.field(column) for column in one.reads(SCHEMA)]),
            one.reads(SCHEMA),
            one.windows,
            opened.get(name, OpenWindows(one.windows)),
        )
        for name, one in new.plans.items()
    }
    removed = {name: opened[name] for name in before.keys() - after.keys()}
    read = ReadSoFar.of([] if runs is None else [(run.progress, run.opened) for run in runs.values()])
    return compare_several(
        through_json(old.definition(SCHEMA)), through_json(new.definition(SCHEMA)), parts, removed, read
    )


@st.composite
def batches(draw: st.DrawFn) -> list[pa.Table]:
    """Some batches; times are in the order of arrival, give or take, and a few rows are a month ahead."""
    found, now = [], 0
    for _ in range(draw(st.integers(1, 4))):
        times = draw(st.lists(st.integers(-8, 8), min_size=1, max_size=6))
        far = draw(st.sampled_from([0, 0, 0, 30 * 86_400]))
        now += draw(st.integers(0, 9))
        rows: list[dict[str, Any]] = [
            {"time": (60 + now + time + far * (number == 0)) * SECOND, "key": "a", "x": 1.0, "n": number, "text": "t"}
            for number, time in enumerate(times)
        ]
        found.append(pa.Table.from_pylist(rows, pa.schema([("time", pa.int64()), *[*SCHEMA][1:]])).cast(SCHEMA))
    return found


def run_all(tables: list[pa.Table]) -> dict[str, Run]:
    runs = {
        name: Run(Plan(query, WINDOWS[name], "time", KSlack()), SCHEMA)
        for name, query in {"best": BEST, "load": LOAD}.items()
    }
    for table in tables:
        for run in runs.values():
            run.take(table)
    return runs


@given(batches())
def test_no_row_that_was_accepted_is_in_a_window_of_an_added_query(tables: list[pa.Table]):
    runs = run_all(tables)
    change = change_of({"best": BEST, "load": LOAD}, {"best": BEST, "load": LOAD, "more": LOAD}, runs)
    start = change.queries["more"].start
    assert start is not None
    assert not change.refused
    if start.first is None:
        assert all(run.progress.newest is None for run in runs.values())
        return
    begin = WINDOWS["more"].bounds(start.first)[0]
    held = {pane.start for run in runs.values() for pane in run.progress.held.panes}
    times = [time for table in tables for time in table["time"].cast(pa.int64()).to_pylist()]
    accepted = [time for time in times if time < 86_400 * SECOND or not held]
    assert all(time < begin for time in accepted)
    # Not after the newest time of the progress, which need not have followed all accepted rows.
    longest = max(windows.longest_pane for windows in WINDOWS.values())
    assert begin - max(accepted) <= WINDOWS["more"].slide + longest


@given(batches())
def test_a_query_is_removed_only_when_no_window_of_it_is_open(tables: list[pa.Table]):
    runs = run_all(tables)
    change = change_of({"best": BEST, "load": LOAD}, {"load": LOAD}, runs)
    if runs["best"].panes.panes:
        (text,) = change.refused
        assert text.startswith("query 'best': is removed, and ")
    else:
        assert change.kept == ("query 'best': is removed; all its windows are answered",)
        assert not change.refused


def test_queries_that_stay_are_not_mentioned():
    assert not change_of({"best": BEST, "load": LOAD}, {"load": LOAD, "best": BEST}).lines


def test_before_any_row_queries_come_and_go():
    change = change_of({"best": BEST}, {"load": LOAD})
    assert change.kept == (
        "query 'load': is added",
        "query 'best': is removed; all its windows are answered",
    )


def test_each_change_is_under_the_name_of_its_query():
    before: dict[str, Query] = {"best": sp.TopK(5, "x"), "load": LOAD}
    after: dict[str, Query] = {
        "best": sp.TopK(2, "x"),
        "load": sp.Aggregate("key", rows=sp.count(), having="rows > 1"),
    }
    change = change_of(before, after)
    assert change.kept == (
        "query 'best': k was 5, is 2",
        "query 'load': 'total' is removed",
        "query 'load': having was None, is 'rows > 1'",
    )
    assert change.queries.keys() == {"best", "load"}
    assert change_of(after, before).refused == ("query 'best': query.k was 2, is 5: the panes hold only 2 rows each",)
