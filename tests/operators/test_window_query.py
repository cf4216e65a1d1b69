from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import cycle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.rows import SCHEMA, SKYLINE, Bag, CountingBag, Counts, multiset, table, tables, windows

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.constructors import count
from skypane.operators.aggregates.constructors import max as max_of
from skypane.operators.aggregates.constructors import sum as sum_of
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.window_query import (
    FEW_PANES,
    FEW_ROWS,
    SOME_PANES,
    TwoStacks,
    WindowAnswer,
    WindowQuery,
    WindowWorker,
)
from skypane.types import ConfigError, MemoryLimitError
from skypane.windows import Windows

BAG = Bag()
Tasks = Sequence[WindowTask[pa.Table]]


@st.composite
def held_panes(draw: st.DrawFn) -> OpenPanes[pa.Table]:
    """Panes near each other and far apart, of one to three partials each."""
    w = draw(windows(st.integers(1, 30)))
    panes = draw(st.lists(st.one_of(st.integers(0, 40), st.integers(-100, 200)), max_size=25))
    return OpenPanes.empty(w).add((pane, draw(tables())) for pane in panes)


def answers(worker: WindowWorker, tasks: Tasks) -> list[WindowAnswer]:
    return list(worker.answers(tasks, lambda partial: partial))


def worker_of(query: Query, w: Windows, *, shares: bool) -> WindowWorker:
    worker = WindowQuery(query, w, "UTC").worker()
    worker._sharing_pays = lambda: shares  # type: ignore[method-assign]
    return worker


def lifted(query: Query, held: OpenPanes[pa.Table]) -> Tasks:
    """Return all windows over the partials of these rows."""
    parts = [(pane, query.lift(rows)) for pane, some in held.panes.items() for rows in some]
    return OpenPanes[pa.Table].empty(held.windows).add(parts).all_windows()


def rows_of(task: WindowTask[pa.Table]) -> pa.Table:
    return pa.concat_tables([partial for _, partials in task.panes for partial in partials])


def naive_skyline(task: WindowTask[pa.Table]) -> pa.Table:
    rows = rows_of(task)
    points = SKYLINE.preference.orient(rows)
    return rows.take(pa.array(oracles.skyline_indices(points), pa.int64()))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 9)), max_size=40))
def test_two_stacks_are_a_queue_with_a_known_combination(script: list[tuple[int, int]]):
    """Each step pushes a pane some way on, then evicts up to some pane before or even behind it."""
    queue, panes, newest = TwoStacks(BAG), [], 0
    for ahead, behind in script:
        newest += ahead
        panes.append(newest)
        queue.push(newest, table([newest]))
        queue.evict_before(newest - behind)
        panes = [pane for pane in panes if pane >= newest - behind]
        if panes:
            assert multiset(queue.combined().select(["time"])) == multiset(table(panes).select(["time"]))


def test_evicting_from_an_empty_queue_does_nothing():
    queue = TwoStacks(BAG)
    queue.evict_before(5)
    queue.push(7, table([7]))
    queue.evict_before(8)
    queue.evict_before(9)
    queue.push(9, table([9]))
    assert queue.combined().equals(table([9]))


@given(held_panes(), st.booleans())
def test_a_window_is_answered_from_its_own_panes_each_once(held: OpenPanes[pa.Table], shares: bool):
    tasks = held.all_windows()
    for task, answer in zip(tasks, answers(worker_of(BAG, held.windows, shares=shares), tasks), strict=True):
        assert answer.window == task.window
        assert multiset(answer.rows.select(SCHEMA.names)) == multiset(rows_of(task))


@given(held_panes(), st.booleans())
def test_the_skyline_of_a_window_is_the_definition(held: OpenPanes[pa.Table], shares: bool):
    found = answers(worker_of(SKYLINE, held.windows, shares=shares), lifted(SKYLINE, held))
    for task, answer in zip(held.all_windows(), found, strict=True):
        assert multiset(answer.rows.select(SCHEMA.names)) == multiset(naive_skyline(task))


@given(held_panes(), st.booleans(), st.data())
def test_a_fresh_worker_gives_the_same_answers_from_any_window_on(
    held: OpenPanes[pa.Table], shares: bool, data: st.DataObject
):
    tasks = held.all_windows()
    expected = [multiset(answer.rows) for answer in answers(worker_of(BAG, held.windows, shares=shares), tasks)]
    at = data.draw(st.integers(0, len(tasks)))
    fresh = answers(worker_of(BAG, held.windows, shares=not shares), tasks[at:])
    assert [multiset(answer.rows) for answer in fresh] == expected[at:]


KEYED = Aggregate("label", n=count(), total=sum_of("x"), most=max_of("y"))


@given(held_panes(), st.lists(st.booleans(), min_size=1))
def test_a_worker_adds_the_panes_of_windows_that_others_have_answered(held: OpenPanes[pa.Table], own: list[bool]):
    query = WindowQuery(KEYED, held.windows, "UTC")
    kept = query.worker()
    assert kept.newest is None
    for task, mine in zip(held.all_windows(), cycle(own)):
        if mine:
            answer, alone = (worker.answer(task, KEYED.lift) for worker in (kept, query.worker()))
            assert multiset(answer.rows) == multiset(alone.rows)
            if query.keeps_merges(SCHEMA):
                assert kept.newest == task.panes[-1][0]


@pytest.mark.parametrize(
    ("query", "overlap", "keeps"),
    [
        (KEYED, 2, True),
        (KEYED, 1, False),
        (Aggregate("label", last=max_of("label")), 20, False),
        (Counts("label"), 20, False),
        (SKYLINE, 20, True),
    ],
)
def test_merges_are_kept_by_a_queue_of_the_querys_own(query: Query, overlap: int, keeps: bool):
    assert WindowQuery(query, Windows(overlap, 1), "UTC").keeps_merges(SCHEMA) is keeps


@given(held_panes(), st.booleans())
def test_every_partial_is_loaded_once(held: OpenPanes[pa.Table], shares: bool):
    refs = (
        OpenPanes[tuple[int, int]]
        .empty(held.windows)
        .add((pane, (pane, i)) for pane, partials in held.panes.items() for i in range(len(partials)))
    )
    loaded: list[tuple[int, int]] = []

    def load(ref: tuple[int, int]) -> pa.Table:
        loaded.append(ref)
        return held.panes[ref[0]][ref[1]]

    worker = worker_of(BAG, held.windows, shares=shares)
    for task in refs.all_windows():
        worker.answer(task, load)
    assert sorted(loaded) == sorted(ref for partials in refs.panes.values() for ref in partials)


@pytest.mark.parametrize(("length", "slide"), [(160, 10), (320, 10), (170, 20), (64, 1)])
def test_merges_are_shared_at_most_three_a_pane_however_long_a_window_is(length: int, slide: int):
    w = Windows(length, slide)
    query, n = CountingBag(), 4 * w.panes_per_window
    held = OpenPanes[pa.Table].empty(w).add((pane, table([pane])) for pane in range(n))
    tasks = held.all_windows()

    answers(worker_of(query, w, shares=True), tasks)
    shared = sum(query.merges)
    query.merges.clear()
    answers(worker_of(query, w, shares=False), tasks)

    assert shared <= 3 * n
    assert sum(query.merges) == sum(len(task.panes) - 1 for task in tasks), "one direct merge of all panes a window"
    assert shared < sum(query.merges) / 2


@pytest.mark.parametrize(
    ("w", "rows", "shares"),
    [
        (Windows(FEW_PANES, 1), FEW_ROWS + 1, False),
        (Windows(FEW_PANES + 1, 1), FEW_ROWS, False),
        (Windows(FEW_PANES + 1, 1), FEW_ROWS + 1, True),
        (Windows(SOME_PANES + 1, 1), 1, True),
        (Windows(SOME_PANES + 1, 2), FEW_ROWS + 1, False),
    ],
)
def test_merges_are_shared_where_it_pays(w: Windows, rows: int, shares: bool):
    worker = WindowQuery(BAG, w, None).worker()
    worker.answer(WindowTask(0, ((0, (table([0] * rows),)),)), lambda partial: partial)
    assert worker._sharing_pays() is shares


@given(held_panes(), st.lists(st.booleans(), min_size=1))
def test_a_worker_may_change_its_way_at_any_window(held: OpenPanes[pa.Table], ways: list[bool]):
    tasks = held.all_windows()
    expected = [multiset(answer.rows) for answer in answers(worker_of(BAG, held.windows, shares=False), tasks)]
    worker, way = worker_of(BAG, held.windows, shares=False), cycle(ways)
    worker._sharing_pays = lambda: next(way)  # type: ignore[method-assign]
    assert [multiset(answer.rows) for answer in answers(worker, tasks)] == expected


@given(held_panes())
def test_a_worker_of_one_window_answers_it_as_one_of_all_windows_does(held: OpenPanes[pa.Table]):
    for query in (BAG, SKYLINE):
        tasks = lifted(query, held)
        expected = [multiset(answer.rows) for answer in answers(worker_of(query, held.windows, shares=True), tasks)]
        alone = [WindowQuery(query, held.windows, "UTC").worker(windows=1) for _ in tasks]
        found = [answers(worker, [task]) for worker, task in zip(alone, tasks, strict=True)]
        assert [multiset(answer.rows) for (answer,) in found] == expected


def long_window() -> tuple[Windows, WindowTask[pa.Table]]:
    """Windows whose merges are shared, and one of them."""
    w = Windows(SOME_PANES + 1, 1)
    return w, WindowTask(0, tuple((pane, (table([pane] * 100),)) for pane in w.panes_of(0)))


def test_a_worker_of_one_window_merges_its_panes_once():
    query, (w, task) = CountingBag(), long_window()
    answers(WindowQuery(query, w, None).worker(windows=1), [task])
    assert query.merges == [SOME_PANES]
    query.merges.clear()
    answers(WindowQuery(query, w, None).worker(windows=2), [task])
    assert len(query.merges) > SOME_PANES, "another window may use these merges"


def test_a_worker_of_one_window_merges_two_panes_at_a_time_if_memory_is_short():
    w, task = long_window()
    room = sum(step_bytes([partial]) for _, partials in task.panes for partial in partials) - 1

    def ask(more: int) -> None:
        if more > room:
            raise MemoryLimitError("too much")

    (answer,) = answers(WindowQuery(BAG, w, None).worker(ask, 1), [task])
    rows = rows_of(task)
    assert multiset(answer.rows.select(SCHEMA.names)) == multiset(rows)
    room = rows.nbytes - 1
    with pytest.raises(MemoryLimitError):
        answers(WindowQuery(BAG, w, None).worker(ask, 1), [task])


@given(held_panes(), st.integers(0, 5))
def test_what_a_worker_holds_is_bounded_by_one_window(held: OpenPanes[pa.Table], skip: int):
    """Skipped windows are those that another worker answers."""
    for shares in (True, False):
        worker = worker_of(BAG, held.windows, shares=shares)
        for task in held.all_windows()[:: skip + 1]:
            worker.answer(task, lambda partial: partial)
            assert isinstance(worker._queue, TwoStacks)
            kept = {pane for pane, _ in [*worker._queue._front, *worker._queue._back]} | set(worker._panes)
            assert kept <= set(held.windows.panes_of(task.window))


def test_a_worker_reserves_memory_for_a_merge_and_for_all_that_it_keeps():
    reserved: list[int] = []
    held = OpenPanes[pa.Table].empty(Windows(8, 1)).add((pane, table([0] * 1_000)) for pane in range(8))
    worker = WindowQuery(BAG, held.windows, None).worker(reserved.append)
    worker._sharing_pays = lambda: True  # type: ignore[method-assign]
    for task in held.all_windows():
        reserved.clear()
        worker.answer(task, lambda partial: partial)
        panes = [partial for _, partials in task.panes for partial in partials]
        assert sum(pane.nbytes for pane in panes) + 2 * step_bytes(panes[:1]) in reserved


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_rows_are_stamped_with_the_bounds_of_their_window(zone: str | None):
    query = WindowQuery(SKYLINE, Windows.of("1 hour", "10 minutes", "5 minutes"), zone)
    stamped = query.stamp(-1, table([1, 2]))
    kind = pa.timestamp("us", zone)
    assert stamped.schema == pa.schema([("window_start", kind), ("window_end", kind), *SCHEMA])
    start, end = datetime(1969, 12, 31, 23, 55, tzinfo=UTC), datetime(1970, 1, 1, 0, 55, tzinfo=UTC)
    expected = [moment if zone else moment.replace(tzinfo=None) for moment in (start, end)]
    assert [stamped.column(name).to_pylist() for name in ("window_start", "window_end")] == [[m, m] for m in expected]
    assert stamped.select(SCHEMA.names).equals(table([1, 2]))
    assert query.output_schema(SCHEMA) == stamped.schema


@pytest.mark.parametrize("versioned", [False, True])
def test_hidden_columns_are_in_no_answer(versioned: bool):
    """They rank the rows, and may have been computed of others: without them, other rows would be the best."""
    w, column = Windows(2, 1), pa.array([3, 1, 2], pa.int64())
    rows = pa.table({"label": ["a", "b", "c"], "x": [1, 2, 3], "hidden": column})
    ranked = Skyline("hidden MIN")
    task = OpenPanes[pa.Table].empty(w).add([(0, ranked.lift(rows))]).all_windows()[0]
    shown, hidden = (WindowQuery(ranked, w, None, versioned, hidden=names) for names in ((), ("hidden", "of another")))
    (whole,), (answer,) = (answers(query.worker(), [task]) for query in (shown, hidden))
    assert whole.rows["label"].to_pylist() == ["b"]
    assert answer.rows == whole.rows.drop_columns(["hidden"])
    assert hidden.output_schema(rows.schema) == answer.rows.schema


def test_answers_of_a_user_defined_query_have_its_schema():
    query = WindowQuery(Counts("label"), Windows(2, 1), None)
    stamps = [("window_start", pa.timestamp("us")), ("window_end", pa.timestamp("us"))]
    assert query.output_schema(SCHEMA) == pa.schema([*stamps, ("label", pa.string()), ("n", pa.int64())])


def test_columns_that_the_stamps_would_hide_are_refused():
    schema = SCHEMA.append(pa.field("window_end", pa.int64())).append(pa.field("Window_Start", pa.int64()))
    with pytest.raises(ConfigError, match=r"rename window_end, Window_Start$"):
        WindowQuery(SKYLINE, Windows(2, 1), None).output_schema(schema)
    WindowQuery(Counts("label"), Windows(2, 1), None).output_schema(schema)  # its answers have no such column
