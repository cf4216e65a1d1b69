from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.placement import Placement, place

MILLION = 1_000_000


@pytest.mark.parametrize(("windows", "rows", "overlap", "workers", "expected"), [
    (0, 0, 5, 4, Placement("driver", 1, "0 windows of 0 rows: 0 ms alone, 150 ms in 1 runs")),
    (10, 100_000, 1, 4, Placement("driver", 1, "10 windows of 100000 rows: 48 ms alone, 162 ms in 4 runs")),
    (10, MILLION, 1, 4, Placement("spark", 4, "10 windows of 1000000 rows: 408 ms alone, 252 ms in 4 runs")),
    (10, MILLION, 5, 4, Placement("spark", 4, "10 windows of 1000000 rows: 1208 ms alone, 452 ms in 4 runs")),
    (2, MILLION, 5, 4, Placement("spark", 2, "2 windows of 1000000 rows: 1202 ms alone, 751 ms in 2 runs")),
    (1000, 1000, 1, 2, Placement("spark", 2, "1000 windows of 1000 rows: 800 ms alone, 550 ms in 2 runs")),
])  # fmt: skip
def test_windows_are_answered_where_it_is_sooner_done(
    windows: int, rows: int, overlap: int, workers: int, expected: Placement
):
    assert place(windows, rows, overlap, workers) == expected


@pytest.mark.parametrize(("windows", "workers"), [(1, 8), (50, 1)])
def test_what_cannot_be_cut_stays_in_the_driver(windows: int, workers: int):
    assert place(windows, 100 * MILLION, 5, workers).where == "driver"


def test_shared_merges_make_a_long_overlap_no_dearer_than_three():
    assert place(10, MILLION, 1_000, 4) == place(10, MILLION, 3, 4)


@given(st.integers(0, 100), st.integers(0, 10 * MILLION), st.integers(1, 20), st.integers(1, 20))
def test_every_run_has_a_window(windows: int, rows: int, overlap: int, workers: int):
    placement = place(windows, rows, overlap, workers)
    assert 1 <= placement.runs <= max(1, min(windows, workers))
    assert placement.where in {"driver", "spark"}
    assert placement.where == "spark" or placement.runs == 1
