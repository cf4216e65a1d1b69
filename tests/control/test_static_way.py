from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.static_way import FEW, FEW_BYTES, SHARES, RowsAtRest, static_way

MANY = RowsAtRest(5_000_000, 160_000_000, in_memory=True, filtered=False)


FILES = RowsAtRest(FEW, 1, in_memory=False, filtered=False)


@pytest.mark.parametrize("criteria", [None, 2, 12])
def test_few_rows_are_answered_in_one_task(criteria):
    few = RowsAtRest(FEW, FEW_BYTES, in_memory=True, filtered=True)
    assert static_way(few, 4, criteria, 2) == "one task"
    assert static_way(replace(few, rows=FEW + 1), 4, criteria, 2) == "tasks"
    assert static_way(replace(few, bytes=FEW_BYTES + 1), 4, criteria, 2) == "tasks"


@pytest.mark.parametrize(("at_rest", "columns", "criteria", "workers", "way"), [
    (None, 4, 4, 2, "tasks"),  # of unknown rows nothing is assumed
    # Files may hold more rows than their size suggests.
    (FILES, 4, 4, 2, "tasks"),
    (replace(FILES, rows=1, bytes=FEW_BYTES), 4, 4, 2, "tasks"),
    (replace(FILES, rows=FEW // 8, bytes=FEW_BYTES // 8), 4, 4, 2, "one task"),
    # A prefilter needs rules, few criteria, and enough rows for each worker.
    (MANY, 4, None, 2, "tasks"),
    (MANY, 12, 12, 2, "tasks"),
    (replace(MANY, rows=FEW + 1), 4, 4, 2, "tasks"),
    (MANY, 4, 4, 1_000, "tasks"),
    # Files are not read twice for rows that a filter may leave out.
    (replace(MANY, in_memory=False, filtered=True), 4, 4, 2, "tasks"),
    (replace(MANY, filtered=True), 4, 4, 2, "prefilter"),
])  # fmt: skip
def test_the_way_depends_on_what_is_known_of_the_rows(at_rest, columns, criteria, workers, way):
    assert static_way(at_rest, columns, criteria, workers) == way


@pytest.mark.parametrize("criteria", [2, 4])
def test_many_rows_of_few_criteria_are_prefiltered(criteria):
    assert static_way(MANY, criteria, criteria, 2) == "prefilter"
    assert static_way(replace(MANY, in_memory=False), criteria, criteria, 2) == "prefilter"


@given(st.integers(0, 10**9), st.integers(1, 50), st.integers(1, 20), st.integers(1, 64), st.booleans())
def test_what_pays_pays_for_more_rows_and_wider_ones(rows, columns, criteria, workers, in_memory):
    at_rest = RowsAtRest(rows, 8 * columns * rows, in_memory=in_memory, filtered=False)
    if static_way(at_rest, columns, criteria, workers) == "prefilter":
        assert static_way(replace(at_rest, rows=2 * rows), columns, criteria, workers) == "prefilter"
        assert static_way(at_rest, columns + 1, criteria, workers) == "prefilter"
        assert criteria <= len(SHARES)
