"""The law of stays: expanded, they are the answers of the windows, for every query, in every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.test_sliding_skyline import tight
from tests.rows import SKYLINE, multiset, table, tables, windows
from tests.runtime.late.test_amended_local import EVENTS, QUERIES

import skypane as sp
from skypane.operators import window_query
from skypane.operators.amendments import AmendRule
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.stay_columns import expanded
from skypane.operators.window_query import StayAnswer, WindowQuery, no_limit
from skypane.plan import Plan
from skypane.progress import KSlack, ProgressPolicy, Watermark
from skypane.runtime import local
from skypane.shared_plan import SharedPlan
from skypane.types import ConfigError, MemoryLimitError
from skypane.windows import Windows

POLICIES: st.SearchStrategy[ProgressPolicy] = st.sampled_from([Watermark("0 us"), Watermark("6 us"), KSlack()])


@contextmanager
def at_once(windows: int) -> Iterator[None]:
    """With stays that end after so many windows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(window_query, "LEAST_AT_ONCE", windows)
        yield


@given(QUERIES, windows(), EVENTS, POLICIES, st.sampled_from([1, 3, 64]))
def test_expanded_stays_are_the_answers(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy, least: int
):
    plan = Plan(query, w, "time", policy, answers="stays")
    with at_once(least):
        for outcome in local.run(plan, events):
            wanted = [answer.rows for answer in outcome.answers if answer.rows.num_rows]
            found = [expanded(stays) for stays in outcome.stays]
            assert sum((multiset(rows) for rows in found), multiset([])) == sum(map(multiset, wanted), multiset([]))
            if wanted:
                assert found[0].schema.equals(wanted[0].schema)


@given(windows(), st.lists(tables(), min_size=1, max_size=6), st.sampled_from([(), ("label",)]), st.booleans())
def test_a_row_of_a_skyline_has_one_stay_in_the_windows_that_are_answered_at_once(
    w: Windows, some: list[pa.Table], by: tuple[str, ...], short: bool
):
    ends = np.cumsum([rows.num_rows for rows in some])
    batches = [
        rows.append_column("id", pa.array(range(end - rows.num_rows, end), pa.int64()))
        for rows, end in zip(some, ends.tolist(), strict=True)
    ]
    plan = Plan(Skyline("x MIN, y MAX", by), w, "time", Watermark("0 us"), answers="stays")
    with tight() if short else nullcontext(), at_once(10**6):
        for outcome in local.run(plan, [*batches, local.Drain()]):
            assert len(outcome.stays) <= 1
            for stays in outcome.stays:
                assert len(set(stays["id"].to_pylist())) == stays.num_rows


def test_a_row_is_written_once_for_its_windows_and_its_copy_once_more():
    rows = table([0, 0, 3, 5], [2.0, 2.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]).drop_columns("label")
    plan = Plan(SKYLINE, Windows(10, 1), "time", Watermark("1 s"), answers="stays")
    *_, last = local.run(plan, [rows, local.Drain()])
    (stays,) = last.stays
    micros = [stays[name].cast(pa.int64()).to_pylist() for name in ("window_from", "window_to", "window_end")]
    found = sorted(zip(*micros, stays["window_count"].to_pylist(), stays["x"].to_pylist(), strict=True))
    assert found == [(-9, -7, 3, 3, 2.0), (-9, -7, 3, 3, 2.0), (-6, 3, 13, 10, 1.0), (-4, 5, 15, 10, 0.0)]


def test_a_stay_continues_in_the_next_batch_in_another_line():
    plan = Plan(SKYLINE, Windows(10, 1), "time", Watermark("0 us"), answers="stays")
    batches = [table([0]), table([4], [9.0], [0.0]), table([30], [9.0], [0.0])]
    spans = [
        [(row["window_count"], row["label"], row["x"]) for stays in outcome.stays for row in stays.to_pylist()]
        for outcome in local.run(plan, batches)
    ]
    assert spans == [[], [(4, "r0", 1.0)], [(6, "r0", 1.0), (4, "r0", 9.0)]]


@pytest.mark.parametrize(("more", "named"), [({"amend": AmendRule(5)}, "Amend"), ({"early": 5}, "early")])
def test_windows_that_are_answered_again_are_not_written_as_stays(more: dict[str, object], named: str):
    plan = replace(Plan(SKYLINE, Windows(10, 1), "time", answers="stays"), **more)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"stays.*{named}"):
        plan.validate(table([]).schema)


def test_another_form_is_refused():
    with pytest.raises(ConfigError, match='"windows" or "stays", got \'stay\''):
        Plan(SKYLINE, Windows(10, 1), "time", answers="stay").validate(table([]).schema)  # type: ignore[arg-type]


def test_the_description_of_a_job_states_that_it_writes_stays():
    plan = Plan(SKYLINE, Windows(10, 1), "time", answers="stays")
    words = ("answers", "stays: each row once for a run of windows")
    for one in (plan, SharedPlan({"best": plan, "worst": plan})):
        assert words in one.in_words
    assert words not in replace(plan, answers="windows").in_words


def test_rows_with_a_column_of_a_stay_are_refused():
    rows = table([]).append_column("Window_Count", pa.array([], pa.int64()))
    with pytest.raises(ConfigError, match="window_from, window_to, window_end and window_count: rename Window_Count"):
        Plan(SKYLINE, Windows(10, 1), "time", answers="stays").validate(rows.schema)


def test_a_long_window_has_few_stays():
    """In batches of m windows a row that is in L of them takes about 1 + (L - 1) / m lines instead of L, with m <= 64."""
    rng = np.random.default_rng(0)
    query = sp.Skyline("x MIN, y MIN, z MIN, u MIN")
    panes = [query.lift(pa.table({name: rng.random(200) for name in "xyzu"})) for _ in range(296)]
    w, windows = Windows(40, 1), 256
    tasks = [WindowTask(k, tuple((pane, (panes[pane],)) for pane in range(k, k + 40))) for k in range(windows)]

    def lines(at_a_time: int) -> int:
        worker = WindowQuery(query, w, None, stays=True).worker()
        blocks = [worker.stays(tasks[at : at + at_a_time], lambda rows: rows) for at in range(0, windows, at_a_time)]
        return sum(some.rows.num_rows for block in blocks for some in block)

    with at_once(windows):
        rows = lines(windows)
    in_windows = lines(1)
    assert in_windows > 10 * rows
    for at_a_time in (1, 5, 20, 64, windows):
        cuts = -(-windows // min(at_a_time, 64)) - 1
        wanted = rows + (in_windows - rows) * cuts / (windows - 1)
        assert lines(at_a_time) == pytest.approx(wanted, rel=0.05)


def stays_of(query: Query, w: Windows, tasks: list[WindowTask[pa.Table]]) -> tuple[list[StayAnswer], list[StayAnswer]]:
    """Return the stays of windows within the memory that their answers take one by one, and without a limit.

    Both have the same answers; within no memory at all there are none.
    """
    asked: list[int] = []
    [*WindowQuery(query, w, "UTC").worker(asked.append).answers(tasks, lambda partial: partial)]

    def ask(more: int) -> None:
        if more > max(asked):
            raise MemoryLimitError("too much")

    def stays(limit: Callable[[int], None]) -> list[StayAnswer]:
        return [*WindowQuery(query, w, "UTC", stays=True).worker(limit).stays(tasks, lambda partial: partial)]

    short, long = stays(ask), stays(no_limit)
    assert [pair for some in short for pair in some.windows] == [pair for some in long for pair in some.windows]
    expansions = [multiset(expanded(pa.concat_tables([some.rows for some in each]))) for each in (short, long)]
    assert expansions[0] == expansions[1]
    with pytest.raises(MemoryLimitError):
        stays(lambda more: ask(more + max(asked)))
    return short, long


def test_panes_of_stays_take_at_most_the_memory_of_those_of_windows():
    """Where the panes of 64 windows are too many at once, those of a few are taken, and their stays are shorter."""
    query, w, panes = sp.Skyline("x MIN, y MAX"), Windows(5, 1), 100
    rows = [table([pane] * 9, [*range(9)], [*range(9)]) for pane in range(panes + 5)]
    tasks = [WindowTask(k, tuple((pane, (rows[pane],)) for pane in range(k, k + 5))) for k in range(panes)]
    short, long = stays_of(query, w, tasks)
    assert [len(some.windows) for some in short] == [*[5] * 12, 4, *[5] * 7, 1]
    assert [len(some.windows) for some in long] == [64, 36]


def test_answers_are_compared_with_as_many_others_as_there_is_memory_for():
    query, w = sp.Aggregate("label", low=sp.min("x")), Windows(1, 1)
    partials = [query.lift(table([pane] * 9, [*range(9)], [*range(9)])) for pane in range(20)]
    tasks = [WindowTask(k, ((k, (partials[k],)),)) for k in range(20)]
    short, long = stays_of(query, w, tasks)
    assert len(long) == 1
    assert long[0].rows.num_rows == 9
    assert 20 > len(short) > 1
