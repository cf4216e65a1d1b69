from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import SCHEMA, SKYLINE, Bag, multiset, split, table, tables, windows

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import REASON
from skypane.operators.pane_query import LiftResult, PaneQuery
from skypane.operators.query import Query
from skypane.windows import Windows

QUERIES = st.sampled_from([Bag(("x", "y")), SKYLINE])
CUTS = st.lists(st.integers(0, 25), max_size=5)
OPEN = st.none() | st.integers(-10, 30)


def lifted(
    query: Query, w: Windows, first_open: int | None, batches: list[pa.Table], buffer_rows: int, *, keep: bool = True
) -> LiftResult:
    gate = EntryRules(w, "time", tuple(query.required), "label", first_open=first_open, keep=keep)
    result: LiftResult = closed_after(PaneQuery(query, gate, buffer_rows=buffer_rows), batches)
    return result


def closed_after(worker: Any, tables: Iterable[pa.Table]) -> Any:
    """Return what a worker has lifted of some tables."""
    for rows in tables:
        for batch in rows.to_batches():
            worker.absorb(batch)
    return worker.close()


def assert_same(query: Query, one: LiftResult, other: LiftResult) -> None:
    assert [part.count for part in one.partials] == [part.count for part in other.partials]
    assert one.rejection.snapshot() == other.rejection.snapshot()
    assert one.sources == other.sources
    for part, same in zip(one.partials, other.partials, strict=True):
        assert multiset(query.lower(part.partial)) == multiset(query.lower(same.partial))


def rejected(result: LiftResult) -> pa.Table:
    return pa.concat_tables([SCHEMA.append(pa.field(REASON, pa.string())).empty_table(), *result.rejection.rows])


@given(QUERIES, windows(), OPEN, tables(clean=False), CUTS, st.integers(1, 30), st.randoms(use_true_random=False))
def test_batches_buffers_and_order_make_no_difference(
    query: Query, w: Windows, first_open: int | None, rows: pa.Table, cuts: list[int], buffer: int, random: Random
):
    order = random.sample(range(rows.num_rows), rows.num_rows)
    shuffled = rows.take(pa.array(order, pa.int64()))
    parts = lifted(query, w, first_open, split(shuffled, [min(cut, rows.num_rows) for cut in cuts]), buffer)
    whole = lifted(query, w, first_open, [rows], rows.num_rows + 1)

    assert_same(query, parts, whole)
    assert multiset(rejected(parts)) == multiset(rejected(whole))


@given(windows(), OPEN, tables(clean=False))
def test_a_partial_is_the_lift_of_what_is_admitted(w: Windows, first_open: int | None, rows: pa.Table):
    result = lifted(SKYLINE, w, first_open, [rows], 10)
    admitted = EntryRules(w, "time", ("x", "y"), "label", first_open=first_open).split(rows)
    assert [part.count for part in result.partials] == [part.count for part in admitted.usable]
    for part, usable in zip(result.partials, admitted.usable, strict=True):
        assert multiset(part.partial) == multiset(SKYLINE.lift(usable.rows))
    assert result.rejection.snapshot() == admitted.rejection.snapshot()


def test_a_clock_measures_how_long_each_pane_took():
    """Lifting a buffer's part of a pane takes a second here; merging the parts does, too."""
    seconds = count()
    worker = PaneQuery(
        SKYLINE, EntryRules(Windows(10, 10), "time", ("x", "y")), buffer_rows=1, clock=lambda: float(next(seconds))
    )
    result = closed_after(worker, [table([5]), table([6, 15])])
    assert [(part.pane, part.busy) for part in result.partials] == [(0, 3.0), (1, 1.0)]
    assert {part.busy for part in lifted(SKYLINE, Windows(10, 10), None, [table([5, 15])], 1).partials} == {0.0}


@pytest.mark.parametrize("batches", [[], [SCHEMA.empty_table()], [SCHEMA.empty_table(), table([None])]])
def test_a_worker_without_usable_rows_has_no_partials(batches: list[pa.Table]):
    result = lifted(SKYLINE, Windows(10, 10), 4, batches, 1)
    assert result.partials == ()
    assert sum(result.rejection.reasons.values()) == sum(rows.num_rows for rows in batches)


def test_rejected_rows_are_kept_on_demand_only():
    rows = [table([1, 99])]
    assert lifted(SKYLINE, Windows(10, 10), 4, rows, 1, keep=False).rejection.rows == ()
    assert rejected(lifted(SKYLINE, Windows(10, 10), 4, rows, 1)).column(REASON).to_pylist() == ["late"]


def test_rows_are_lifted_as_soon_as_the_buffer_is_full():
    worker = PaneQuery(SKYLINE, EntryRules(Windows(10, 10), "time", ("x", "y")), buffer_rows=3)
    for at in range(7):
        worker.absorb(table([at]).to_batches()[0])
        assert worker._buffer.rows == (at + 1) % 3
    assert [part.count.rows for part in worker.close().partials] == [7]
