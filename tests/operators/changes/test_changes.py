"""Queries that change while panes are open, against the definition: each query run from the start over the same rows."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import skypane as sp
from skypane.operators.advance import ProgressStep, advance, drained
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.wide_states import DistinctPart
from skypane.operators.changes.comparison import OpenWindows, QueryChange, compare
from skypane.operators.changes.window_phases import Phase, PhasedWindows, left_of, phase_of
from skypane.operators.open_panes import OpenPanes
from skypane.operators.query import Query
from skypane.operators.stay_columns import expanded
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.progress import KSlack, Watermark
from skypane.progress.progress_policy import ProgressState
from skypane.runtime import local
from skypane.snapshots import from_json, through_json, to_json
from skypane.testing.query_kit import multiset
from skypane.windows import Windows

SCHEMA = pa.schema(
    {"time": pa.timestamp("us"), "key": pa.string(), "x": pa.float64(), "n": pa.int64(), "text": pa.string()}
)
LESS = pa.schema([field for field in SCHEMA if field.name != "x"])
STATES: Final[dict[str, tuple[str, Any]]] = {
    "rows": ("rows", sp.count()),
    "high": ("high", sp.count_if("x > 2")),
    "total": ("sum of n", sp.sum("n")),
    "sum": ("sum of n", sp.sum("n")),
    "mean": ("sum of n", sp.avg("n")),
    "most": ("most", sp.max("x")),
    "spread": ("spread", sp.stddev("x")),
    "words": ("texts", sp.count_distinct("text")),
    "different": ("texts", sp.collect_set("text")),
    "listed": ("listed", sp.collect_list("text", order="n")),
    "newest": ("newest", sp.last("text", order="time")),
    "often": ("counts of n", sp.mode("n")),
    "middle": ("counts of n", sp.median("n")),
    "exact": ("counts of n", sp.percentile("n", [0.1, 0.5])),
    "parts": ("counts of n", sp.percentile_approx("n", [0.2, 0.9])),
    "about": ("about", sp.approx_count_distinct("n")),
}
"""Functions of an aggregate, each with a name of the state that answers it; that of `rows` is always kept."""
CHOICES = [
    AnswerFilter(),
    AnswerFilter("rows > 1"),
    AnswerFilter("most > 1"),
    AnswerFilter(top=1, rank_by="total"),
    AnswerFilter("total > 0", 2, "rows"),
]
PASSING: list[Query] = [
    sp.Skyline("n MIN", "key"),
    sp.TopK(2, "n", "key"),
    sp.KDominant(1, "n MIN"),
    sp.TopDelta(1, "n MIN"),
]


@dataclass
class Run:
    """A query over batches that may be changed between two of them; what the engine does, without files and Spark."""

    plan: Plan
    schema: pa.Schema
    progress: ProgressState = field(init=False)
    panes: OpenPanes[pa.Table] = field(init=False)
    query: WindowQuery = field(init=False)
    phases: tuple[Any, ...] = ()
    answers: dict[int, pa.Table] = field(default_factory=dict)

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
        self._answer(step, [(part.pane, self.plan.query.lift(part.rows)) for part in entry.usable])

    def drain(self) -> None:
        self._answer(drained(self.plan.progress, self.progress, self.panes), [])

    def _answer(self, step: ProgressStep, lifted: list[tuple[int, pa.Table]]) -> None:
        self.panes, self.progress = self.panes.without(step.abandoned).add(lifted), step.state
        due = self.panes.closed_by(self.progress.punctuation)
        self.panes = self.panes.retire(self.progress.punctuation)
        self.phases = left_of(self.phases, self.panes.next_window)
        for answer in self.query.worker().answers(due, lambda table: table):
            assert answer.window not in self.answers
            self.answers[answer.window] = answer.rows
        stays = replace(self.query, stays=True).worker().stays(due, lambda table: table)
        answered = [multiset(self.answers[task.window]) for task in due]
        assert sum((multiset(expanded(some.rows)) for some in stays), Counter()) == sum(answered, Counter())


def from_the_start(query: Query, windows: Windows, schema: pa.Schema, events: Iterable[Any]) -> dict[int, pa.Table]:
    """Return the rows of each window, by the definition."""
    plan = Plan(query, windows, "time", Watermark("4 microseconds", max_ahead=None))
    read = [event.select(schema.names) if isinstance(event, pa.Table) else event for event in events]
    return {answer.window: answer.rows for answer in local.answers(plan, read)}


Rows = list[tuple[int, str | None, float | None, int, str | None]]
ROWS: st.SearchStrategy[Rows] = st.lists(
    st.tuples(
        st.integers(-8, 8),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0.0, 1.5, 3.0, None]),
        st.integers(-2, 3),
        st.sampled_from(["u", "v", None]),
    ),
    max_size=8,
)
"""Rows that come at most a few panes late, with few distinct values, so that ties abound; their times are from now on."""
BATCHES = st.tuples(st.integers(0, 12), ROWS)
"""How much later it is, and the rows that come."""


def batch(now: int, rows: Rows) -> pa.Table:
    shifted = [(now + time, *values) for time, *values in rows]
    return pa.table([list(column) for column in zip(*shifted, strict=True)] or [[]] * len(SCHEMA), SCHEMA)


@st.composite
def streams(draw: st.DrawFn) -> list[pa.Table]:
    """Return some batches."""
    drawn = draw(st.lists(BATCHES, min_size=2, max_size=7))
    nows = np.cumsum([step for step, _ in drawn]).tolist()
    return [batch(now, rows) for now, (_, rows) in zip(nows, drawn, strict=True)]


def aggregate(names: Iterable[str], choice: AnswerFilter = CHOICES[0]) -> sp.Aggregate:
    functions = {name: STATES[name][1] for name in names}
    return sp.Aggregate("key", having=choice.having, top=choice.top, rank_by=choice.rank_by, **functions)


@st.composite
def aggregates(draw: st.DrawFn) -> sp.Aggregate:
    names = draw(st.lists(st.sampled_from(sorted(STATES)), min_size=1, max_size=4, unique=True))
    return aggregate(names, draw(st.sampled_from([choice for choice in CHOICES if choice.columns <= {*names}])))


WINDOWS = [Windows(10, 10), Windows(12, 4), Windows(9, 4), Windows(40, 10, 3)]


def nulled(rows: pa.Table, names: Iterable[str]) -> pa.Table:
    for name in names:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, rows.schema.field(at).type))
    return rows


class Changing(RuleBasedStateMachine):
    """A query of any kind that changes as rows come, and what is known of them.

    events     what came, as the query knows it: x is null in rows that were read when it was not a column, or before it went
    known      the states that the panes have of windows that hold rows read before a change; of other windows, all
    untied     windows that hold rows whose ties were broken by a column that went
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.events: list[Any] = []
        self.known: dict[int, set[str]] = {}
        self.untied: set[int] = set()
        self.checked: set[int] = set()
        self.phases: tuple[Phase, ...] = ()
        self.change = QueryChange()

    @initialize(
        query=st.one_of(aggregates(), aggregates(), st.sampled_from(PASSING)),
        windows=st.sampled_from(WINDOWS),
        schema=st.sampled_from([SCHEMA, SCHEMA, LESS]),
    )
    def begin(self, query: Query, windows: Windows, schema: pa.Schema) -> None:
        schema = SCHEMA if isinstance(query, sp.Aggregate) else schema
        self.run = Run(Plan(query, windows, "time", Watermark("4 microseconds", max_ahead=None)), schema)

    @property
    def query(self) -> Query:
        return self.run.plan.query

    @property
    def holding(self) -> set[int]:
        """The windows that hold rows read so far."""
        return {window for pane in self.run.panes.panes for window in self.run.plan.windows.windows_of(pane)}

    @rule(batches=st.lists(BATCHES, min_size=1, max_size=4))
    def read(self, batches: list[tuple[int, Rows]]) -> None:
        for step, rows in batches:
            self.now += step
            read = batch(self.now, rows)
            self.events.append(read if "x" in self.run.schema.names else nulled(read, ["x"]))
            self.run.take(read)

    @precondition(lambda self: self.run.panes.panes)
    @rule(really=st.sampled_from([False, False, True]))
    def drain(self, really: bool) -> None:
        if really:
            self.events.append(local.Drain())
            self.run.drain()
            assert not self.run.panes.panes

    @precondition(lambda self: isinstance(self.query, sp.Aggregate))
    @rule(after=aggregates())
    def change_the_aggregate(self, after: sp.Aggregate) -> None:
        before = self.query
        assert isinstance(before, sp.Aggregate)
        had, has = ({name: STATES[name][0] for name, _ in query.functions} for query in (before, after))
        change, holding, panes = self._change(after), self.holding, self.run.panes.panes
        if change.refused:
            assert "remove it in a later change" in change.refused[0]
            return
        for window in holding:
            self.known[window] = self.known.get(window, {*had.values()}) & {*had.values()}
        added = {name for name in has.keys() - had.keys() if has[name] not in {*had.values(), "rows"}}
        begins = {line.split("'")[1] for line in change.begins if line.startswith("'")}
        assert begins == (added if panes else set()), "these are null in some windows, the others begin at once"
        assert {f"{name!r} is removed" for name in had.keys() - has.keys()} <= {*change.kept}

    @precondition(lambda self: isinstance(self.query, sp.TopK))
    @rule(k=st.integers(1, 4))
    def change_k(self, k: int) -> None:
        assert isinstance(self.query, sp.TopK)
        before = self.query.k
        change = self._change(replace(self.query, k=k))
        assert bool(change.kept) == (k < before)
        assert bool(change.refused) == (k > before)
        assert not change.begins

    @precondition(lambda self: not isinstance(self.query, sp.Aggregate))
    @rule()
    def change_the_columns(self) -> None:
        gone, holding = self.run.schema == SCHEMA, self.holding
        change = self._change(self.query, LESS if gone else SCHEMA)
        assert not change.refused
        assert bool(change.begins) == (
            bool(self.run.panes.panes) and not (gone and not isinstance(self.query, sp.TopK))
        )
        if gone:
            self.events = [nulled(event, ["x"]) if isinstance(event, pa.Table) else event for event in self.events]
            self.untied |= holding if isinstance(self.query, sp.TopK) else set()

    def _change(self, query: Query, schema: pa.Schema | None = None) -> QueryChange:
        """Check what the earlier query answered, and change it."""
        self.teardown()
        before = self.run.plan, self.run.schema, self.run.phases
        change = self.run.change_to(query, schema or self.run.schema)
        assert not change.refused or before == (self.run.plan, self.run.schema, self.run.phases)
        self.phases, self.change = self.run.phases, change
        return change

    def teardown(self) -> None:
        """Check all windows that were answered since the last change."""
        if not hasattr(self, "run"):
            return
        query, answers = self.query, self.run.answers
        bare = query.chosen_by(AnswerFilter()) if isinstance(query, sp.Aggregate) else query
        whole = from_the_start(bare, self.run.plan.windows, self.run.schema, self.events)
        assert answers.keys() == whole.keys()
        wrong = {
            window: (answers[window].to_pylist(), expected.to_pylist())
            for window in answers.keys() - self.checked
            for found, expected in [self._compared(window, answers[window], whole[window])]
            if multiset(found) != multiset(expected)
        }
        assert not wrong
        self.checked = {*answers}

    def _compared(self, window: int, found: pa.Table, bare: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return what an answer is compared with: null in functions that the window does not know, and filtered."""
        query, phase = self.query, phase_of(self.phases, window)
        if not isinstance(query, sp.Aggregate):
            some = ["key", "n"] if window in self.untied else bare.column_names
            return found.select(some), bare.select(some)
        known = self.known.get(window)
        needs = {name: STATES[name][0] for name, _ in query.functions}
        unknown = set() if known is None else {name for name in needs if needs[name] not in {*known, "rows"}}
        choice = query.choice if phase is None else phase.choice
        assert unknown == (set() if phase is None else {*phase.unknown})
        assert choice == query.choice or query.choice.columns & unknown
        return found, choice.of(nulled(bare, unknown))


def test_a_query_that_changes_answers_as_the_new_one_where_it_knows_and_null_where_it_does_not():
    run_state_machine_as_test(Changing, settings=settings(stateful_step_count=20))


def drawn(count: int) -> list[tuple[int, Rows]]:
    """Return some batches that are the same in each run."""
    rng = np.random.default_rng(count)
    values: list[list[Any]] = [["a", "b", None], [0.0, 1.5, 3.0, None], [*range(-2, 4)], ["u", "v", None]]
    return [
        (
            int(rng.integers(0, 13)),
            [(int(rng.integers(-8, 9)), *(some[rng.integers(len(some))] for some in values)) for _ in range(6)],
        )
        for _ in range(count)
    ]


def driven(query: Query, change: Callable[[Changing], None], *, less: bool = False) -> list[QueryChange]:
    """Let a query change among batches, in windows of each kind; return the changes."""
    batches, changes = drawn(6), []
    for when, windows in enumerate(WINDOWS, start=1):
        one = Changing()
        one.begin(query, windows, LESS if less else SCHEMA)
        one.read(batches[:when])
        change(one)
        one.read(batches[when:])
        one.drain(really=True)
        one.teardown()
        changes.append(one.change)
    return changes


KEPT: dict[str, tuple[Query, Query]] = {
    "a smaller k": (sp.TopK(4, "n", "key"), sp.TopK(2, "n", "key")),
    "a filter": (aggregate(["rows", "most"]), aggregate(["rows", "most"], AnswerFilter("most > 1", 1, "rows"))),
    "a function less": (aggregate(["rows", "words", "most"]), aggregate(["most"])),
    "a mean of a sum": (aggregate(["total"]), aggregate(["mean", "total"])),
    "a set of counted values": (aggregate(["words"]), aggregate(["different"])),
    "functions of the same counts": (aggregate(["often"]), aggregate(["exact", "middle", "often"])),
    "another name": (aggregate(["sum"]), aggregate(["total"])),
}


@pytest.mark.parametrize(("before", "after"), KEPT.values(), ids=KEPT.keys())
def test_what_the_partials_suffice_for_begins_at_once(before: Query, after: Query):
    def change(one: Changing) -> None:
        one.change_the_aggregate(after) if isinstance(after, sp.Aggregate) else one.change_k(cast("sp.TopK", after).k)

    for made in driven(before, change):
        assert made
        assert not made.begins
        assert not made.refused


@pytest.mark.parametrize("less", [False, True], ids=["a column less", "a column more"])
@pytest.mark.parametrize("query", PASSING, ids=lambda query: type(query).__name__)
def test_a_column_that_is_added_is_null_in_rows_read_before_and_one_that_goes_is_gone(query: Query, less: bool):
    assert all(driven(query, Changing.change_the_columns, less=less))


def test_the_other_name_of_a_function_makes_no_change():
    before = sp.Aggregate("key", m=sp.avg("n"), rows=sp.count(), all=sp.percentile("x", 0.5))
    run = Run(Plan(before, Windows(10, 10), "time"), SCHEMA)
    change = run.change_to(sp.Aggregate("key", m=sp.mean("n"), rows=sp.count("*"), all=sp.median("x")), SCHEMA)
    assert not list(change.lines)


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
