from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.rows import NAN, SCHEMA, SKYLINE, Bag, Counts, chunked, micros_of, multiset, table, tables, windows

from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.operators.window_query import WindowAnswer
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.preference import Preference, Score, high, low
from skypane.progress import KSlack, ProgressPolicy, Watermark
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.progress_policy import ProgressState, Punctuation
from skypane.runtime import local
from skypane.types import ConfigError
from skypane.windows import Windows

PREFERENCE = Preference.of("x MIN, y MAX")
EACH_QUERY: list[Query] = [
    SKYLINE,
    Skyline(low("x") & high("y")),
    Skyline(PREFERENCE, ("label",)),
    KDominant(1, PREFERENCE),
    TopDelta(2, PREFERENCE),
    TopK(3, Score.of("x - y")),
    Bag(("x", "y")),
    Counts("label"),
]
QUERIES = st.sampled_from(EACH_QUERY)
EACH_POLICY: list[ProgressPolicy] = [
    Watermark("0 us"),
    Watermark("6 us"),
    Watermark("3 us", max_ahead="20 us", support=4, patience=7),
    KSlack(),
]
POLICIES = st.sampled_from([*EACH_POLICY, KSlack(max_slack="9 us", max_ahead="30 us")])
BATCHES = st.lists(tables(clean=False), max_size=6)
TUMBLING = Windows(10, 10)
PLAN = Plan(SKYLINE, TUMBLING, "time", Watermark("0 us"))

Answers = list[tuple[int, Any]]


def run(plan: Plan, batches: Sequence[local.Event]) -> Answers:
    """The answers, in the order in which they came, each window's rows without their order."""
    return [(answer.window, multiset(answer.rows)) for answer in local.answers(plan, batches)]


def rankable(row: dict[str, Any], query: Query) -> bool:
    return row["time"] is not None and not any(row[c] is None or row[c] != row[c] for c in query.required)


def definition(plan: Plan, batches: list[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Every row ever admitted is remembered; every window is looked at after each batch, and answered from its rows."""
    w, policy = plan.windows, plan.progress
    state, admitted, answered = policy.init(), SCHEMA.empty_table(), set[int]()
    for rows in batches:
        usable = [i for i, row in enumerate(rows.to_pylist()) if rankable(row, plan.query)]
        times = [time for i, time in enumerate(micros_of(rows)) if i in usable and time is not None]
        arrivals = PaneArrivals.of_times(times, w)
        punctuation = state.punctuation
        state, decision = policy.decide(state, arrivals)
        abandoned = {pane.start for pane in decision.value.future.abandoned.panes}
        ends = [w.pane_end(w.pane_at(time)) for time in times]
        entering = [i for i, end in zip(usable, ends, strict=True) if punctuation is None or end > punctuation]
        starts = [w.pane_start(w.pane_at(time)) for time in micros_of(admitted) if time is not None]
        kept = [i for i, start in enumerate(starts) if start not in abandoned]
        parts = ((admitted, kept), (rows, entering))
        admitted = pa.concat_tables(part.take(pa.array(indices, pa.int64())) for part, indices in parts)
        yield from _completed(plan, admitted, state, answered)


def _completed(
    plan: Plan, admitted: pa.Table, state: ProgressState, answered: set[int]
) -> Iterator[tuple[int, pa.Table]]:
    w, times = plan.windows, [time for time in micros_of(admitted) if time is not None]
    for k in sorted({k for time in times for k in w.windows_of(w.pane_at(time))} - answered):
        start, end = w.bounds(k)
        if state.punctuation is not None and end <= state.punctuation:
            answered.add(k)
            yield k, admitted.take(pa.array([i for i, time in enumerate(times) if start <= time < end]))


@given(windows(), BATCHES, POLICIES)
def test_every_closed_window_is_answered_with_the_skyline_of_its_admitted_rows(
    w: Windows, batches: list[pa.Table], policy: ProgressPolicy
):
    plan = Plan(SKYLINE, w, "time", policy)
    answers = list(local.answers(plan, batches))
    expected = list(definition(plan, batches))
    assert [answer.window for answer in answers] == [k for k, _ in expected]
    for answer, (_, rows) in zip(answers, expected, strict=True):
        best = oracles.skyline_indices(PREFERENCE.orient(rows))
        assert multiset(answer.rows.select(SCHEMA.names)) == multiset(rows.take(pa.array(best)))


def rejected(plan: Plan, batches: list[pa.Table]) -> Iterator[list[dict[str, Any]]]:
    """The rows that are rejected with each batch, with their reason, by the definition."""
    w, policy = plan.windows, plan.progress
    state = policy.init()
    held: list[tuple[int, dict[str, Any]]] = []
    for rows in batches:
        found = [unusable(row, plan.query) for row in rows.to_pylist()]
        times = [time for time, why in zip(micros_of(rows), found, strict=True) if why is None and time is not None]
        arrivals = PaneArrivals.of_times(times, w)
        punctuation = state.punctuation
        state, decision = policy.decide(state, arrivals)
        verdict = decision.value.future
        abandoned = {pane.start for pane in verdict.abandoned.panes}
        future = [row | {"reason": "future"} for start, row in held if start in abandoned]
        held = [] if abandoned else held
        for at, (time, row) in enumerate(zip(micros_of(rows), rows.to_pylist(), strict=True)):
            if found[at] is None and time is not None:
                start, end = w.pane_start(w.pane_at(time)), w.pane_end(w.pane_at(time))
                if punctuation is not None and end <= punctuation:
                    found[at] = "late"
                elif verdict.limit is not None and start > verdict.limit:
                    held.append((start, row))
        unfit = [row | {"reason": why} for row, why in zip(rows.to_pylist(), found, strict=True) if why is not None]
        yield unfit + future


def unusable(row: dict[str, Any], query: Query) -> str | None:
    if row["time"] is None:
        return "null time"
    bad = ((name, row[name]) for name in query.required if row[name] is None or row[name] != row[name])
    return next((f"{'null' if value is None else 'NaN'} {name}" for name, value in bad), None)


@given(windows(), BATCHES, POLICIES)
def test_every_row_that_does_not_enter_comes_back_with_its_reason(
    w: Windows, batches: list[pa.Table], policy: ProgressPolicy
):
    plan = Plan(SKYLINE, w, "time", policy)
    for outcome, expected in zip(local.run(plan, batches), rejected(plan, batches), strict=True):
        assert multiset([row for table in outcome.rejection.rows for row in table.to_pylist()]) == multiset(expected)
        assert outcome.rejection.reasons == Counter(row["reason"] for row in expected)


@given(QUERIES, windows(), BATCHES, POLICIES)
def test_any_query_is_answered_as_if_all_rows_of_a_window_were_lifted_at_once(
    query: Query, w: Windows, batches: list[pa.Table], policy: ProgressPolicy
):
    plan = Plan(query, w, "time", policy)
    answers = list(local.answers(plan, batches))
    expected = [(k, query.lower(query.combine([query.lift(rows)]))) for k, rows in definition(plan, batches)]
    assert [answer.window for answer in answers] == [k for k, _ in expected]
    for answer, (k, rows) in zip(answers, expected, strict=True):
        assert multiset(answer.rows) == multiset(plan.window_query(SCHEMA).stamp(k, rows))


@given(
    QUERIES,
    windows(),
    BATCHES,
    POLICIES.filter(lambda policy: not policy.needs_order),
    st.lists(st.integers(0, 25), max_size=4),
    st.randoms(use_true_random=False),
)
def test_order_and_chunks_within_a_batch_make_no_difference(
    query: Query, w: Windows, batches: list[pa.Table], policy: ProgressPolicy, cuts: list[int], random: Random
):
    def shuffled(rows: pa.Table) -> pa.Table:
        order = random.sample(range(rows.num_rows), rows.num_rows)
        return chunked(rows.take(pa.array(order, pa.int64())), [min(cut, rows.num_rows) for cut in cuts])

    plan = Plan(query, w, "time", policy)
    assert run(plan, [shuffled(rows) for rows in batches]) == run(plan, batches)


@dataclass(frozen=True)
class Restarted(ProgressPolicy):
    """A policy whose state goes through its snapshot, as JSON, at every step."""

    policy: ProgressPolicy

    def init(self) -> Any:
        return self._again(self.policy.init())

    def decide(self, state: Any, known: PaneArrivals) -> tuple[Any, Decision[Punctuation]]:
        after, decision = self.policy.decide(self._again(state), known)
        return self._again(after), decision

    def close(self, state: Any, time: int) -> Any:
        return self._again(self.policy.close(self._again(state), time))

    def restore(self, snapshot: Any) -> Any:
        return self.policy.restore(snapshot)

    def settle(self, state: Any) -> tuple[Any, Decision[Punctuation]]:
        settled, decision = self.policy.settle(self._again(state))
        return self._again(settled), decision

    def describe(self) -> dict[str, Any]:
        return self.policy.describe()

    @property
    def drop_budget(self) -> float | None:
        return self.policy.drop_budget

    def _again(self, state: Any) -> Any:
        return self.policy.restore(json.loads(json.dumps(self.policy.snapshot(state))))


EVENTS = st.lists(st.one_of(tables(clean=False), tables(clean=False), st.builds(local.Drain)), max_size=8)


@given(windows(), EVENTS, st.sampled_from([Watermark("0 us"), Watermark("6 us"), KSlack()]))
def test_a_drain_answers_every_window_with_a_row_and_none_twice(
    w: Windows, events: list[local.Event], policy: ProgressPolicy
):
    """Whatever comes after it: rows for the windows that it answered are late, the others go on."""
    admitted: Counter[tuple[str, int]] = Counter()
    answered: set[int] = set()
    for event, outcome in zip(events, local.run(Plan(Bag(("x", "y")), w, "time", policy), events), strict=True):
        if isinstance(event, pa.Table):
            admitted += timed(event) - timed(*(rows.drop_columns("reason") for rows in outcome.rejection.rows))
        for answer in outcome.answers:
            start, end = w.bounds(answer.window)
            assert answer.window not in answered
            answered.add(answer.window)
            assert timed(answer.rows.select(SCHEMA.names)) == Counter(
                {row: n for row, n in admitted.items() if start <= row[1] < end}
            )
        if isinstance(event, local.Drain):
            assert {k for _, time in admitted for k in w.windows_of(w.pane_at(time))} <= answered


def timed(*tables: pa.Table) -> Counter[tuple[str, int]]:
    """Return each row as a text, and its time; those without are none of the windows' business."""
    rows = ((str(row), time) for rows in tables for row, time in zip(rows.to_pylist(), micros_of(rows), strict=True))
    return Counter((row, time) for row, time in rows if time is not None)


def test_a_drain_discards_what_is_held_and_alone():
    plan = Plan(SKYLINE, Windows(2, 2), "time", Watermark("0 us", max_ahead="100 us", patience=2))
    events = [table([0, 3]), table([4, 900]), local.Drain(), table([6]), table([8]), table([10])]
    outcomes = list(local.run(plan, events))
    assert [[answer.window for answer in outcome.answers] for outcome in outcomes] == [[0], [1], [2], [], [3], [4]]
    assert [outcome.rejection.reasons for outcome in outcomes] == [{}, {}, {"future": 1}, {}, {}, {}]


def test_a_drain_is_a_punctuation_at_the_end_of_the_last_window():
    """Length 4, slide 2: windows [-2, 2), [0, 4), [2, 6) hold rows when the stream ends; a row at 5 is late then."""
    plan = Plan(SKYLINE, Windows(4, 2), "time", Watermark("10 us"))
    events = [table([0, 3]), local.Drain(), local.Drain(), table([5, 6]), local.Drain()]
    outcomes = list(local.run(plan, events))
    assert [[answer.window for answer in outcome.answers] for outcome in outcomes] == [[], [-1, 0, 1], [], [], [2, 3]]
    assert [outcome.rejection.reasons for outcome in outcomes] == [{}, {}, {}, {"late": 1}, {}]


@given(windows(), EVENTS, POLICIES)
def test_restoring_progress_at_every_step_makes_no_difference(
    w: Windows, events: list[local.Event], policy: ProgressPolicy
):
    plan = Plan(SKYLINE, w, "time", policy)
    assert run(replace(plan, progress=Restarted(policy)), events) == run(plan, events)


@given(windows(), BATCHES, POLICIES)
def test_input_tables_are_left_as_they_were(w: Windows, batches: list[pa.Table], policy: ProgressPolicy):
    before = [multiset(rows) for rows in batches]
    run(Plan(SKYLINE, w, "time", policy), batches)
    assert [multiset(rows) for rows in batches] == before


def labels(answers: Iterator[WindowAnswer]) -> dict[int, list[str]]:
    return {answer.window: sorted(answer.rows.column("label").to_pylist()) for answer in answers}


def test_a_row_is_late_from_the_moment_its_pane_is_closed():
    """Windows of two panes of 10; the punctuation after the first batch is 20.

    pane       0          1          2
    batch 1    r0 at 5               r1 at 20
    batch 2    r0 at 9    r1 at 19   r2 at 20   r3 at 29   r4 at 40
    late       yes        yes        no         no         no
    """
    plan = Plan(Bag(), Windows(20, 10), "time", Watermark("0 us"))
    first, second = table([5, 20]), table([9, 19, 20, 29, 40])
    tagged = second.set_column(3, "label", pa.array(["late 9", "late 19", "20", "29", "40"]))
    new = ["20", "29", "r1"]
    assert labels(local.answers(plan, [first, tagged])) == {-1: ["r0"], 0: ["r0"], 1: new, 2: new}


def test_a_pane_may_be_closed_while_a_window_still_waits_for_the_next_one():
    plan = Plan(Bag(), Windows(20, 10), "time", Watermark("0 us"))
    answers = local.answers(plan, [table([5]), table([11]), table([6, 12]), table([20])])
    assert labels(answers) == {-1: ["r0"], 0: ["r0", "r0", "r1"]}, "the row at 6 comes when pane 0 is closed: late"


def test_a_clock_in_the_far_future_closes_nothing_and_is_in_no_answer():
    plan = Plan(Bag(), TUMBLING, "time", Watermark("0 us", max_ahead="100 us"))
    batches = [table([1, 2]), table([3, 10**15]), table([4, 12]), table([25])]
    assert labels(local.answers(plan, batches)) == {0: ["r0", "r0", "r0", "r1"], 1: ["r1"]}


def test_rows_that_cannot_be_ranked_are_in_no_answer_and_move_no_time():
    rows = table([1, 2, 3, None, 99, 98], [2.0, NAN, None, 0.0, NAN, None])
    assert labels(local.answers(PLAN, [rows])) == {}, "the rows at 98 and 99 would have closed pane 0"
    assert labels(local.answers(PLAN, [rows, table([10])])) == {0: ["r0"]}


def test_an_answer_comes_before_the_next_batch_is_requested():
    log = []

    def batches() -> Iterator[pa.Table]:
        for at in (0, 10, 20):
            log.append(f"batch at {at}")
            yield table([at])

    for answer in local.answers(PLAN, batches()):
        log.append(f"window {answer.window}")  # noqa: PERF401 - the batches log too, in between
    assert log == ["batch at 0", "batch at 10", "window 0", "batch at 20", "window 1"]


@pytest.mark.parametrize("batches", [[], [SCHEMA.empty_table()], [SCHEMA.empty_table(), table([None])]])
def test_without_rows_there_are_no_answers(batches: list[pa.Table]):
    assert run(PLAN, batches) == []


def test_an_empty_batch_in_between_changes_nothing():
    batches = [table([1, 5]), table([12]), table([31])]
    spaced = [part for rows in batches for part in (SCHEMA.empty_table(), rows)]
    assert run(PLAN, spaced) == run(PLAN, batches)


def test_rows_that_do_not_fit_the_plan_are_refused_before_any_is_read():
    with pytest.raises(ConfigError, match="unknown column 'x'; there are time"):
        run(PLAN, [SCHEMA.empty_table().select(["time"])])
