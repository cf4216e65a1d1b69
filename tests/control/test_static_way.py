from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.static_way import FEW, FEW_BYTES, SHARES, RowsAtRest, static_way

MANY = RowsAtRest(5_000_000, 160_000_000, in_memory=True, filtered=False)


def test_of_unknown_rows_nothing_is_assumed():
    assert static_way(None, columns=4, criteria=4, workers=2) == "tasks"


@pytest.mark.parametrize("criteria", [None, 2, 12])
def test_few_rows_are_answered_in_one_task(criteria):
    few = RowsAtRest(FEW, FEW_BYTES, in_memory=True, filtered=True)
    assert static_way(few, 4, criteria, 2) == "one task"
    assert static_way(replace(few, rows=FEW + 1), 4, criteria, 2) == "tasks"
    assert static_way(replace(few, bytes=FEW_BYTES + 1), 4, criteria, 2) == "tasks"


def test_files_may_hold_more_rows_than_their_size_suggests():
    assert static_way(RowsAtRest(FEW, 1, in_memory=False, filtered=False), 4, 4, 2) == "tasks"
    assert static_way(RowsAtRest(1, FEW_BYTES, in_memory=False, filtered=False), 4, 4, 2) == "tasks"
    assert static_way(RowsAtRest(FEW // 8, FEW_BYTES // 8, in_memory=False, filtered=False), 4, 4, 2) == "one task"


@pytest.mark.parametrize("criteria", [2, 4])
def test_many_rows_of_few_criteria_are_prefiltered(criteria):
    assert static_way(MANY, criteria, criteria, 2) == "prefilter"
    assert static_way(replace(MANY, in_memory=False), criteria, criteria, 2) == "prefilter"


def test_a_prefilter_needs_rules_few_criteria_and_enough_rows_for_each_worker():
    assert static_way(MANY, 4, None, 2) == "tasks"
    assert static_way(MANY, 12, 12, 2) == "tasks"
    assert static_way(replace(MANY, rows=FEW + 1), 4, 4, 2) == "tasks"
    assert static_way(MANY, 4, 4, 1_000) == "tasks"


def test_files_are_not_read_twice_for_rows_that_a_filter_may_leave_out():
    assert static_way(replace(MANY, in_memory=False, filtered=True), 4, 4, 2) == "tasks"
    assert static_way(replace(MANY, filtered=True), 4, 4, 2) == "prefilter"


@given(st.integers(0, 10**9), st.integers(1, 50), st.integers(1, 20), st.integers(1, 64), st.booleans())
def test_what_pays_pays_for_more_rows_and_wider_ones(rows, columns, criteria, workers, in_memory):
    at_rest = RowsAtRest(rows, 8 * columns * rows, in_memory=in_memory, filtered=False)
    if static_way(at_rest, columns, criteria, workers) == "prefilter":
        assert static_way(replace(at_rest, rows=2 * rows), columns, criteria, workers) == "prefilter"
        assert static_way(at_rest, columns + 1, criteria, workers) == "prefilter"
        assert criteria <= len(SHARES)
