"""Stays against their definition: the windows of a row, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import NESTED, SKYLINE, UTC, multiset, windows

from skypane.operators.stay_columns import are_stays, expanded, one_by_one
from skypane.operators.stays import WindowStays, numbered
from skypane.operators.window_query import WindowQuery
from skypane.windows import Windows

STEPS = st.lists(st.integers(1, 3), min_size=1, max_size=8).map(lambda gaps: np.cumsum(gaps).tolist())
VALUES = st.sampled_from([0.0, -0.0, 1.0, float("nan"), None])


def members_of(stays: WindowStays, steps: int) -> list[list[int]]:
    """Return the rows at each step, by the definition."""
    found: list[list[int]] = [[] for _ in range(steps)]
    for number, first, last in zip(*(column.tolist() for column in stays), strict=True):
        for step in range(first, last + 1):
            found[step].append(number)
    return found


def breaks(members: Sequence[set[int]], steps: Sequence[int]) -> int:
    """Return how many unbroken runs there are."""
    before = [(set(), steps[0] - 2), *zip(members, steps, strict=True)]
    return sum(len(now - was if at == then + 1 else now) for (was, then), (now, at) in pairwise(before))


@given(STEPS, st.data())
def test_stays_are_the_longest_runs_of_steps_that_hold_a_row(steps: list[int], data: st.DataObject):
    low = data.draw(st.sampled_from([0, 7, 10**9]))
    members = [data.draw(st.sets(st.integers(low, low + 4))) for _ in steps]
    stays = WindowStays.of_members([np.array(sorted(one), np.int64) for one in members], steps)
    assert [set(one) for one in members_of(stays, len(steps))] == members
    assert stays.counts(len(steps)).tolist() == [len(one) for one in members]
    assert len(stays.numbers) == breaks(members, steps)


@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), max_size=6), STEPS)
def test_a_row_is_there_at_the_clocks_after_its_start_and_up_to_its_end(
    spans: list[tuple[int, int]], clocks: list[int]
):
    numbers = np.arange(len(spans))
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    stays = WindowStays.between(numbers, starts, ends, np.array(clocks))
    wanted = [[n for n, (start, end) in enumerate(spans) if start < clock <= end] for clock in clocks]
    assert members_of(stays, len(clocks)) == wanted


@given(st.lists(st.lists(st.tuples(VALUES, st.sampled_from(["a", None])), max_size=5), min_size=1, max_size=5))
def test_equal_rows_of_two_tables_have_one_number_and_those_of_one_table_have_several(answers: list[list[Any]]):
    schema = pa.schema([("x", pa.float64()), ("label", pa.string())])
    tables = [pa.Table.from_pylist([{"x": x, "label": label} for x, label in rows], schema=schema) for rows in answers]
    rows, numbers = numbered(tables)
    for table, mine in zip(tables, numbers, strict=True):
        assert len(set(mine.tolist())) == table.num_rows
        assert list(map(repr, rows.take(pa.array(mine)).to_pylist())) == list(map(repr, table.to_pylist()))
    most: Counter[str] = Counter()
    for table in tables:
        most |= multiset(table)
    assert multiset(rows) == most


def test_rows_of_any_type_are_compared():
    rows, (first, second) = numbered([NESTED, NESTED.take(pa.array([2, 0]))])
    assert rows.num_rows == NESTED.num_rows
    assert second.tolist() == first[[2, 0]].tolist()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich", None])
@given(windows(), st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5), st.integers(0, 2)), max_size=6))
def test_a_stay_expands_to_its_row_in_each_window(zone: str | None, w: Windows, drawn: list[tuple[int, int, int]]):
    query = WindowQuery(SKYLINE, w, zone, stays=True)
    first = np.array([begin for begin, _, _ in drawn], np.int64)
    rows = pa.table({"x": pa.array([x for *_, x in drawn], pa.int64())})
    stays = query.stamp_stays(rows, first, first + np.array([more for _, more, _ in drawn], np.int64))
    assert are_stays(stays.schema)
    wanted = [
        query.stamp(window, rows.slice(row, 1))
        for row, (begin, more, _) in enumerate(drawn)
        for window in range(begin, begin + more + 1)
    ]
    none = query.stamp(0, rows.slice(0, 0))
    assert expanded(stays).equals(pa.concat_tables([none, *wanted]))
    single = one_by_one(stays)
    assert single.schema.equals(stays.schema)
    assert single["window_count"].to_pylist() == [1] * len(wanted)
    assert expanded(single).equals(expanded(stays))


def test_answers_of_windows_are_not_stays():
    query = WindowQuery(SKYLINE, Windows(4, 1), "UTC")
    schema = pa.schema([("time", UTC), ("x", pa.float64())])
    assert not are_stays(query.output_schema(schema))
