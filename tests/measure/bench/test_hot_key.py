"""All ways to divide a window's rows by key give the answer that the query gives for all rows at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure.bench import hot_key
from measure.bench.aggregates import Case
from measure.bench.hot_key import (
    QUERIES,
    ROWS_HEAD,
    SLIDE,
    cases,
    divided,
    in_order_of_keys,
    rows_line,
    seconds_head,
    window_of,
)
from measure.bench.key_division import WAYS, as_read, by_cut_keys, by_hash, hashed, plan_of
from measure.results.record import Table

from skypane.windows import Windows

LARGE = 60_000
"""Rows beyond those that Aggregate lifts at once."""


@st.composite
def some_rows(draw: st.DrawFn) -> pa.Table:
    """Rows of a few panes, whose keys may all be one."""
    count = draw(st.integers(1, 400))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    keys = np.where(rng.random(count) < draw(st.sampled_from([0.0, 0.5, 1.0])), 7, rng.integers(0, 40, count))
    moments = np.sort(rng.integers(0, 3_600_000_000, count))
    return pa.table(
        {
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "key": keys,
            "x": np.round(rng.random(count), 1),
            "y": np.round(rng.random(count), 1),
            "user": rng.integers(0, 50, count),
        }
    )


@given(some_rows(), st.sampled_from(sorted(QUERIES)), st.sampled_from(sorted(WAYS)), st.integers(1, 9))
def test_each_way_gives_the_answer_of_all_rows(rows: pa.Table, name: str, way: str, n: int):
    query = QUERIES[name]
    found = WAYS[way](query, rows, Windows.of("1 hour", SLIDE), n)
    assert in_order_of_keys(found.answer).equals(in_order_of_keys(query.lower(query.lift(rows))))
    assert found.rows.sum() == rows.num_rows
    assert len(found.rows) == len(found.lifting) == len(found.merging) == len(found.merged) == n


@pytest.mark.parametrize("name", ["count, sum", "collect_list"])
def test_so_it_does_beyond_the_rows_that_are_lifted_at_once(name: str):
    case = Case(2 * LARGE, 500, SLIDE, hot=0.9)
    rows, query = window_of(case), QUERIES[name]
    found = divided(name, rows, case, 5)
    expected = in_order_of_keys(query.lower(query.lift(rows)))
    assert all(in_order_of_keys(one.answer).equals(expected) for one in found.values())


def test_a_key_with_most_rows_is_one_tasks_work_by_hash_alone():
    case = cases(20_000)[2]
    rows, query = window_of(case), QUERIES["count, sum"]
    total = rows.num_rows
    assert as_read(query, rows, case.windows, 4).rows.max() <= total / 4 + 1
    assert by_hash(query, rows, case.windows, 4).rows.max() > 0.9 * total
    assert by_cut_keys(query, rows, case.windows, 4).rows.max() < 0.4 * total


def test_only_the_hot_key_is_cut_among_even_ones():
    hashes = hashed(window_of(cases(20_000)[2]))
    hot, _ = max(zip(*np.unique(hashes, return_counts=True), strict=True), key=lambda pair: pair[1])
    assert list(plan_of(hashes, 4).parts) == [hot]


def test_an_answer_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch):
    case = cases(1_000)[0]
    rows = window_of(case)
    monkeypatch.setitem(WAYS, "hash", lambda query, table, windows, n: by_hash(query, table.slice(1), windows, n))
    with pytest.raises(AssertionError, match="hash: another answer"):
        divided("count, sum", rows, case, 2)


def test_tables_have_a_cell_for_each_column():
    case = cases(2_000)[1]
    rows = window_of(case)
    assert len(rows_line(case, rows, 4)) == len(ROWS_HEAD)
    assert len(hot_key.seconds_line("collect_list", case, rows, (2, 3), 1)) == len(seconds_head((2, 3)))


def test_a_quick_run_returns_both_tables(capsys: pytest.CaptureFixture[str]):
    shares, seconds = hot_key.main(["--quick"])
    assert isinstance(shares, Table)
    assert isinstance(seconds, Table)
    assert (shares.page, shares.mark, seconds.mark) == ("bench-aggregates.md", "hot key, rows", "hot key, seconds")
    assert {len(line) for line in seconds.lines} == {len(seconds.head)}
    assert "16,384 90% of one | in_order" in capsys.readouterr().out
