"""Several queries over one read of the rows: each has what it would have alone, and a rejected row names who rejects it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.test_pane_query import assert_same, closed_after
from tests.rows import SKYLINE, Bag, split, table, tables, windows

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import LATE, REASON
from skypane.operators.entry.shared_rejects import QUERIES, rejected_by
from skypane.operators.pane_query import PaneQuery
from skypane.operators.query import Query
from skypane.operators.shared_pane_query import SharedLift, SharedPaneQuery
from skypane.windows import Windows

COLUMNS = ("time", "x", "y", "label")
ASKED: dict[str, Query] = {"bag": Bag(()), "front": SKYLINE, "points": Bag(("x",))}
OPEN = st.none() | st.integers(-10, 30)
CUTS = st.lists(st.integers(0, 25), max_size=5)


@st.composite
def lifts(draw: st.DrawFn) -> dict[str, SharedLift]:
    """Entry rules and windows of their own for each query."""
    names = draw(st.lists(st.sampled_from([*ASKED]), min_size=1, unique=True))
    return {
        name: SharedLift(
            ASKED[name],
            EntryRules(draw(windows()), "time", tuple(ASKED[name].required), "label", first_open=draw(OPEN)),
            COLUMNS,
        )
        for name in names
    }


@given(lifts(), tables(clean=False), CUTS, st.integers(1, 30))
def test_each_query_has_what_it_would_have_alone(
    shared: dict[str, SharedLift], rows: pa.Table, cuts: list[int], buffer: int
):
    rows = rows.select(COLUMNS)
    parts = split(rows, [min(cut, rows.num_rows) for cut in cuts])
    together = closed_after(SharedPaneQuery(shared, buffer_rows=buffer), parts)
    assert together.rejected == ()
    for name, lift in shared.items():
        alone = closed_after(PaneQuery(lift.query, lift.gate), [rows])
        assert_same(lift.query, together.lifted[name], alone)


@given(lifts(), tables(clean=False), st.integers(1, 30))
def test_a_rejected_row_names_each_query_that_rejects_it_once(
    shared: dict[str, SharedLift], rows: pa.Table, buffer: int
):
    together = closed_after(SharedPaneQuery(shared, keep=True, buffer_rows=buffer), [rows.select(COLUMNS)])
    found: Counter[tuple[str, str]] = Counter()
    for part in together.rejected:
        for reason, queries in zip(part[REASON].to_pylist(), part[QUERIES].to_pylist(), strict=True):
            found.update((name, reason) for name in queries.split(", "))
    counted = {(name, why): n for name, one in together.lifted.items() for why, n in one.rejection.reasons.items()}
    assert found == counted


def test_rows_are_grouped_by_reason_and_by_queries():
    """The second row is late for both, the third for the one with short panes alone, the fourth has no time."""
    rows = table([21, 3, 12, None])
    gates = {
        "short": EntryRules(Windows(10, 10), "time", (), first_open=2),
        "long": EntryRules(Windows(20, 20), "time", (), first_open=0),
        "longer": EntryRules(Windows(10, 10), "time", (), first_open=1),
    }
    rejected = rejected_by(rows, gates).select(["label", REASON, QUERIES]).to_pylist()
    assert [tuple(row.values()) for row in rejected] == [
        ("r3", "null time", "short, long, longer"),
        ("r1", LATE, "short, longer"),
        ("r2", LATE, "short"),
    ]


def test_nothing_rejected_is_a_table_without_rows():
    rows = table([21])
    rejected = rejected_by(rows, {"one": EntryRules(Windows(10, 10), "time", ())})
    assert rejected.num_rows == 0
    assert rejected.column_names[-2:] == [REASON, QUERIES]


def test_seconds_are_those_of_each_query():
    ticks = iter(range(1_000))
    lift = SharedLift(SKYLINE, EntryRules(Windows(10, 10), "time", ("x", "y")), COLUMNS)
    worker = SharedPaneQuery({"one": lift, "two": lift}, clock=lambda: float(next(ticks)))
    busy = closed_after(worker, [table([1, 11])]).busy
    assert set(busy) == {"one", "two"}
    assert all(seconds > 0 for seconds in busy.values())
