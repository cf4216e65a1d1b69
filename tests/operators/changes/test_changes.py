"""Queries that change while panes are open, against the definition: each query run from the start over the same rows."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.operators.advance import advance
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.wide_states import DistinctPart
from skypane.operators.changes.comparison import OpenWindows, QueryChange, compare
from skypane.operators.changes.window_phases import Phase, PhasedWindows, left_of
from skypane.operators.open_panes import OpenPanes
from skypane.operators.query import Query
from skypane.operators.stay_columns import expanded
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.progress import KSlack, ProgressPolicy
from skypane.progress.progress_policy import ProgressState
from skypane.runtime import local
from skypane.snapshots import from_json, through_json, to_json
from skypane.windows import Windows

SCHEMA = pa.schema(
    {
        "time": pa.timestamp("us"),
        "key": pa.string(),
        "x": pa.float64(),
        "n": pa.int64(),
        "text": pa.string(),
    }
)
KEYED: dict[str, Any] = {
    "rows": sp.count(),
    "high": sp.count_if("x > 2"),
    "total": sp.sum("n"),
    "mean": sp.avg("n"),
    "most": sp.max("x"),
    "spread": sp.stddev("x"),
    "words": sp.count_distinct("text"),
    "listed": sp.collect_list("text", order="n"),
    "newest": sp.last("text", order="time"),
    "often": sp.mode("n"),
    "middle": sp.median("n"),
    "different": sp.collect_set("text"),
    "parts": sp.percentile_approx("n", [0.2, 0.9]),
    "about": sp.approx_count_distinct("n"),
}
CHOICES = [
    AnswerFilter(),
    AnswerFilter("rows > 1"),
    AnswerFilter("most > 1"),
    AnswerFilter(top=1, rank_by="total"),
    AnswerFilter("total > 0", 2, "rows"),
]

Answers = dict[int, Counter[str]]


@dataclass
class Run:
    """A query over batches that may be changed between two of them; what the engine does, without files and Spark."""

    plan: Plan
    schema: pa.Schema
    progress: ProgressState = field(init=False)
    panes: OpenPanes[pa.Table] = field(init=False)
    query: WindowQuery = field(init=False)
    phases: tuple[Any, ...] = ()
    answers: Answers = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.progress = self.plan.progress.init()
        self.panes = OpenPanes.empty(self.plan.windows)
        self.query = self.plan.window_query(self.schema)

    @property
    def opened(self) -> OpenWindows:
        held = frozenset(self.plan.windows.pane_at(pane.start) for pane in self.progress.held.panes)
        return OpenWindows(self.plan.windows, frozenset(self.panes.panes), held, self.panes.next_window, self.phases)

    def change_to(self, query: Query, schema: pa.Schema) -> QueryChange:
        """Return the change, and make it if it is not refused."""
        plan = replace(self.plan, query=query)
        plan.validate(schema)
        before, after = self.plan.definition(self.schema), plan.definition(schema)
        change = compare(through_json(before), through_json(after), query, schema, self.opened)
        if not change.refused:
            self.plan, self.schema, self.phases = plan, schema, change.phases
            self.panes = self.panes.replace(
                (pane, query.combine([change.partial(part) for part in parts]))
                for pane, parts in self.panes.panes.items()
            )
            self.query = PhasedWindows(query, plan.windows, None, phases=change.phases)
        return change

    def take(self, rows: pa.Table) -> None:
        rows = rows.select(self.schema.names)
        entry = self.plan.gate.after(self.progress.punctuation).split(rows)
        step = advance(self.plan.progress, self.plan.windows, self.progress, entry.counts, entry.sources)
        lifted = ((part.pane, self.plan.query.lift(part.rows)) for part in entry.usable)
        self.panes, self.progress = self.panes.without(step.abandoned).add(lifted), step.state
        due = self.panes.closed_by(self.progress.punctuation)
        self.panes = self.panes.retire(self.progress.punctuation)
        self.phases = left_of(self.phases, self.panes.next_window)
        for answer in self.query.worker().answers(due, lambda table: table):
            assert answer.window not in self.answers
            self.answers[answer.window] = multiset(answer.rows)
        stays = replace(self.query, stays=True).worker().stays(due, lambda table: table)
        answered = [self.answers[task.window] for task in due]
        assert sum((multiset(expanded(some.rows)) for some in stays), Counter()) == sum(answered, Counter())


def multiset(rows: pa.Table) -> Counter[str]:
    return Counter(repr(row) for row in rows.to_pylist())


def tables(answers: Iterable[Any]) -> dict[int, pa.Table]:
    return {answer.window: answer.rows for answer in answers}


def from_the_start(query: Query, windows: Windows, schema: pa.Schema, batches: Sequence[pa.Table]) -> dict[int, Any]:
    """Return the rows of each window, by the definition."""
    plan = Plan(query, windows, "time", policy())
    return tables(local.answers(plan, [batch.select(schema.names) for batch in batches]))


def policy() -> ProgressPolicy:
    return KSlack(max_ahead=None)


@st.composite
def streams(draw: st.DrawFn) -> list[pa.Table]:
    """Batches of rows that come at most a few panes late, with few distinct values, so that ties abound."""
    batches, now = [], 0
    for _ in range(draw(st.integers(2, 7))):
        now += draw(st.integers(0, 12))
        count = draw(st.integers(0, 8))
        times = [now + draw(st.integers(-8, 8)) for _ in range(count)]
        batches.append(
            pa.table(
                {
                    "time": pa.array(times, pa.timestamp("us")),
                    "key": draw(st.lists(st.sampled_from(["a", "b", None]), min_size=count, max_size=count)),
                    "x": draw(st.lists(st.sampled_from([0.0, 1.5, 3.0, None]), min_size=count, max_size=count)),
                    "n": draw(st.lists(st.integers(-2, 3), min_size=count, max_size=count)),
                    "text": draw(st.lists(st.sampled_from(["u", "v", None]), min_size=count, max_size=count)),
                },
                SCHEMA,
            )
        )
    return batches


@st.composite
def aggregates(draw: st.DrawFn) -> sp.Aggregate:
    names = draw(st.lists(st.sampled_from(sorted(KEYED)), min_size=1, max_size=4, unique=True))
    fitting = [choice for choice in CHOICES if choice.columns <= {*names}]
    choice = draw(st.sampled_from(fitting))
    functions = {name: KEYED[name] for name in names}
    return sp.Aggregate("key", having=choice.having, top=choice.top, rank_by=choice.rank_by, **functions)


WINDOWS = st.sampled_from([Windows(10, 10), Windows(12, 4), Windows(9, 4), Windows(40, 10, 3)])


def shown(rows: pa.Table, unknown: Sequence[str], choice: AnswerFilter) -> Counter[str]:
    """Return the rows of an answer without a filter as a phase shows them."""
    for name in unknown:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, rows.schema.field(at).type))
    return multiset(choice.of(rows))


@given(st.data(), WINDOWS, streams())
def test_an_aggregate_that_changes_answers_as_the_new_one_where_it_knows_and_null_where_it_does_not(
    data: st.DataObject, windows: Windows, batches: list[pa.Table]
):
    queries = data.draw(st.lists(aggregates(), min_size=2, max_size=3))
    times = sorted(data.draw(st.integers(0, len(batches))) for _ in queries[1:])
    run = Run(Plan(queries[0], windows, "time", policy()), SCHEMA)
    expected: Answers = {}
    changes = list(zip(times, queries[1:], strict=True))
    current = queries[0]
    for number, batch in enumerate([*batches, None]):
        for query in [query for time, query in changes if time == number]:
            before = run.plan.query
            change = run.change_to(query, SCHEMA)
            if change.refused:
                assert "remove it in a later change" in change.refused[0]
                assert run.plan.query == before
            else:
                current = query
        if batch is None:
            break
        phases, seen = run.phases, {*run.answers}
        run.take(batch)
        if run.answers.keys() == seen:
            continue
        bare = from_the_start(current.chosen_by(AnswerFilter()), windows, SCHEMA, batches[: number + 1])
        for window in run.answers.keys() - seen:
            phase = next((phase for phase in phases if phase.begin <= window < phase.end), None)
            unknown, choice = ((), current.choice) if phase is None else (phase.unknown, phase.choice)
            expected[window] = shown(bare[window], unknown, choice)
    assert run.answers == expected
    assert run.answers.keys() == from_the_start(queries[0], windows, SCHEMA, batches).keys()


@given(st.data(), WINDOWS, streams())
def test_the_stated_windows_are_those_that_hold_earlier_rows_and_no_others(
    data: st.DataObject, windows: Windows, batches: list[pa.Table]
):
    """The answer of a window is null in an added function if and only if the window holds a row read before."""
    when = data.draw(st.integers(0, len(batches)))
    run = Run(Plan(sp.Aggregate("key", rows=sp.count()), windows, "time", policy()), SCHEMA)
    for batch in batches[:when]:
        run.take(batch)
    holding = {window for pane in run.panes.panes for window in windows.windows_of(pane)}
    change = run.change_to(sp.Aggregate("key", rows=sp.count(), words=sp.count_distinct("text")), SCHEMA)
    assert not change.refused
    assert bool(change.begins) == bool(run.panes.panes)
    before = {*run.answers}
    for batch in batches[when:]:
        run.take(batch)
    whole = from_the_start(run.plan.query, windows, SCHEMA, batches)
    for window in run.answers.keys() - before:
        expected = whole[window] if window not in holding else None
        nulls = shown(whole[window], ["words"], AnswerFilter())
        assert run.answers[window] == (nulls if expected is None else multiset(expected))


QUERIES: dict[str, tuple[Query, Query]] = {
    "a smaller k": (sp.TopK(4, "n", "key"), sp.TopK(2, "n", "key")),
    "a filter": (
        sp.Aggregate("key", rows=sp.count(), most=sp.max("x")),
        sp.Aggregate("key", having="most > 1", top=1, rank_by="rows", rows=sp.count(), most=sp.max("x")),
    ),
    "a function less": (
        sp.Aggregate("key", rows=sp.count(), words=sp.count_distinct("text"), most=sp.max("x")),
        sp.Aggregate("key", most=sp.max("x")),
    ),
    "a mean of a sum": (sp.Aggregate("key", t=sp.sum("n")), sp.Aggregate("key", m=sp.avg("n"), t=sp.sum("n"))),
    "a set of counted values": (
        sp.Aggregate("key", words=sp.count_distinct("text")),
        sp.Aggregate("key", words=sp.collect_set("text")),
    ),
    "functions of the same counts": (
        sp.Aggregate("key", often=sp.mode("n")),
        sp.Aggregate("key", parts=sp.percentile("n", [0.1, 0.5]), middle=sp.median("n"), often=sp.mode("n")),
    ),
    "another name": (sp.Aggregate("key", t=sp.sum("n")), sp.Aggregate("key", total=sp.sum("n"))),
}


@pytest.mark.parametrize(("before", "after"), QUERIES.values(), ids=QUERIES.keys())
@given(st.data(), WINDOWS, streams())
def test_what_the_partials_suffice_for_begins_at_once(
    before: Query, after: Query, data: st.DataObject, windows: Windows, batches: list[pa.Table]
):
    when = data.draw(st.integers(0, len(batches)))
    run = Run(Plan(before, windows, "time", policy()), SCHEMA)
    for batch in batches[:when]:
        run.take(batch)
    answered = {*run.answers}
    change = run.change_to(after, SCHEMA)
    assert change
    assert not change.begins
    assert not change.refused
    for batch in batches[when:]:
        run.take(batch)
    old, new = (from_the_start(query, windows, SCHEMA, batches) for query in (before, after))
    assert run.answers == {window: multiset((old if window in answered else new)[window]) for window in new}


def test_the_other_name_of_a_function_makes_no_change():
    before = sp.Aggregate("key", m=sp.avg("n"), rows=sp.count(), all=sp.percentile("x", 0.5))
    run = Run(Plan(before, Windows(10, 10), "time"), SCHEMA)
    change = run.change_to(sp.Aggregate("key", m=sp.mean("n"), rows=sp.count("*"), all=sp.median("x")), SCHEMA)
    assert not list(change.lines)


PASSING: list[Query] = [
    sp.Skyline("n MIN", "key"),
    sp.TopK(2, "n", "key"),
    sp.KDominant(1, "n MIN"),
    sp.TopDelta(1, "n MIN"),
]


@pytest.mark.parametrize("query", PASSING, ids=lambda query: type(query).__name__)
@given(st.data(), WINDOWS, streams())
def test_a_column_more_is_null_in_rows_read_before_and_there_in_later_ones(
    query: Query, data: st.DataObject, windows: Windows, batches: list[pa.Table]
):
    when = data.draw(st.integers(0, len(batches)))
    less = pa.schema([field for field in SCHEMA if field.name != "x"])
    run = Run(Plan(query, windows, "time", policy()), less)
    for batch in batches[:when]:
        run.take(batch)
    answered = {*run.answers}
    change = run.change_to(query, SCHEMA)
    assert bool(change.begins) == bool(run.panes.panes)
    for batch in batches[when:]:
        run.take(batch)
    nulled = [batch.set_column(2, SCHEMA.field("x"), pa.nulls(batch.num_rows, pa.float64())) for batch in batches]
    without = from_the_start(query, windows, less, batches)
    whole = from_the_start(query, windows, SCHEMA, [*nulled[:when], *batches[when:]])
    assert run.answers == {window: multiset((without if window in answered else whole)[window]) for window in whole}


@pytest.mark.parametrize("query", PASSING, ids=lambda query: type(query).__name__)
@given(st.data(), WINDOWS, streams())
def test_a_column_less_is_gone_from_the_next_window_on(
    query: Query, data: st.DataObject, windows: Windows, batches: list[pa.Table]
):
    when = data.draw(st.integers(0, len(batches)))
    less = pa.schema([field for field in SCHEMA if field.name != "x"])
    run = Run(Plan(query, windows, "time", policy()), SCHEMA)
    for batch in batches[:when]:
        run.take(batch)
    answered, holding = {*run.answers}, {w for pane in run.panes.panes for w in windows.windows_of(pane)}
    change = run.change_to(query, less)
    assert bool(change.begins) == (isinstance(query, sp.TopK) and bool(run.panes.panes))
    for batch in batches[when:]:
        run.take(batch)
    new = from_the_start(query, windows, less, batches)
    compared = new.keys() - answered - (holding if isinstance(query, sp.TopK) else set())
    assert {window: run.answers[window] for window in compared} == {
        window: multiset(new[window]) for window in compared
    }
    assert run.answers.keys() == new.keys()


REFUSED: dict[str, tuple[Query, Query, str]] = {
    "a larger k": (sp.TopK(2, "n"), sp.TopK(3, "n"), "query.k was 2, is 3: the panes hold only 2 rows each"),
    "another score": (sp.TopK(2, "n"), sp.TopK(2, "x"), "query.score was 'n', is 'x'"),
    "another preference": (sp.Skyline("n MIN"), sp.Skyline("n MAX"), "query.levels was"),
    "other keys": (
        sp.Aggregate("key", rows=sp.count()),
        sp.Aggregate("text", rows=sp.count()),
        "query.by was ['key'], is ['text']: states are kept for the earlier keys",
    ),
    "another kind": (sp.TopK(2, "n"), sp.Skyline("n MIN"), "query.query was 'top_k', is 'skyline'"),
}


@pytest.mark.parametrize(("before", "after", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_panes_do_not_hold_is_refused_with_the_reason(before: Query, after: Query, reason: str):
    change = Run(Plan(before, Windows(10, 10), "time"), SCHEMA).change_to(after, SCHEMA)
    assert any(reason in line for line in change.refused), change.refused


def test_a_function_with_user_defined_code_may_be_added_and_removed():
    own, other = sp.in_order(only_the_first, "text", returns=pa.string(), order="n"), sp.count()
    run = Run(Plan(sp.Aggregate("key", own=own, rows=other), Windows(10, 10), "time"), SCHEMA)
    assert run.change_to(sp.Aggregate("key", own=own), SCHEMA).kept == ("'rows' is removed",)
    assert run.change_to(sp.Aggregate("key", rows=other), SCHEMA).kept[1] == "'own' is removed"
    assert not run.change_to(sp.Aggregate("key", rows=other, own=own), SCHEMA).refused


def only_the_first(rows: pa.Table) -> Any:
    return rows.column(0)[0].as_py()


def test_a_user_defined_state_is_refused_if_its_code_is_gone():
    """The engine cannot read how wide such a state is."""
    own = sp.accumulate(Longest("text"))
    run = Run(Plan(sp.Aggregate("key", rows=sp.count()), Windows(10, 10), "time"), SCHEMA)
    assert not run.change_to(sp.Aggregate("key", rows=sp.count(), own=own), SCHEMA).refused
    assert not run.change_to(sp.Aggregate("key", own=own), SCHEMA).refused
    assert run.change_to(sp.Aggregate("key", rows=sp.count()), SCHEMA).refused == (
        "the state of 'own', longest, can be read only by its own code: keep this function",
    )


class Longest(DistinctPart):
    """A state that only this class knows."""

    recorded = "longest"


def test_columns_that_only_rejected_rows_have_may_come_and_go():
    query = sp.Aggregate("key", rows=sp.count())
    less = pa.schema([SCHEMA.field(name) for name in ("text", "key", "time")])
    run = Run(Plan(query, Windows(10, 10), "time"), SCHEMA)
    assert run.change_to(query, less).kept == ("column 'x' is no longer read", "column 'n' is no longer read")
    assert run.change_to(query, SCHEMA).lines[0] == ("kept", "column 'x' is added to rejected rows")
    assert run.change_to(query, pa.schema(list(SCHEMA)[::-1])), "without words, the order differs"
    assert not run.change_to(query, pa.schema(list(SCHEMA)[::-1])).refused


def test_columns_in_another_order_or_of_another_type_are_refused():
    run = Run(Plan(sp.TopK(2, "n"), Windows(10, 10), "time"), SCHEMA)
    assert (
        "ties are broken column by column" in run.change_to(sp.TopK(2, "n"), pa.schema(list(SCHEMA)[::-1])).refused[0]
    )
    cast = SCHEMA.set(2, pa.field("x", pa.float32()))
    assert "columns.x was 'double', is 'float'" in run.change_to(sp.TopK(2, "n"), cast).refused[0]


def test_the_stated_window_leaves_out_what_is_held_far_ahead():
    """A row of a clock that is years ahead is held in its pane, and does not move the stated window there."""
    run = Run(Plan(sp.Aggregate("key", rows=sp.count()), Windows(60_000_000, 60_000_000), "time", KSlack()), SCHEMA)
    row = {"key": "a", "x": 1.0, "n": 1, "text": "u"}
    year = 365 * 86_400_000_000
    run.take(pa.Table.from_pylist([row | {"time": time} for time in range(40)], SCHEMA))
    run.take(pa.Table.from_pylist([row | {"time": year}], SCHEMA))
    assert run.opened.held
    change = run.change_to(sp.Aggregate("key", rows=sp.count(), most=sp.max("x")), SCHEMA)
    assert change.begins == (
        (
            "'most' is added: null in the windows that hold rows read so far; from the window 1970-01-01 00:01 to "
            "1970-01-01 00:02 on"
        ),
    )
    assert [(phase.begin, phase.unknown) for phase in change.phases] == [(0, ("most",)), (365 * 1440, ("most",))]


def test_windows_with_phases_travel_to_workers():
    windows = PhasedWindows(sp.Aggregate("key", rows=sp.count()), Windows(10, 10), "UTC", phases=(PHASE,))
    assert pickle.loads(pickle.dumps(windows)) == windows  # noqa: S301 - its own


def test_phases_are_kept_in_a_checkpoint():
    kept = through_json(to_json((PHASE,)))
    assert from_json(tuple[Phase, ...], kept) == (PHASE,)


PHASE = Phase(3, 7, ("rows",), AnswerFilter("rows > 1", 2, "rows"))
