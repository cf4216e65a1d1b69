"""Amended answers against the definition: after every event the last versions are those of a run without late rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import SCHEMA, SKYLINE, Bag, micros_of, multiset, split, table, tables, windows
from tests.runtime.test_local import EACH_POLICY, EACH_QUERY

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.progress import AqKSlack, ProgressPolicy, Watermark
from skypane.runtime import local
from skypane.types import ConfigError
from skypane.windows import Windows

AGGREGATES = [sp.Aggregate("label", n=sp.count(), low=sp.min("y")), sp.Aggregate(n=sp.count(), having="n < 3")]
QUERIES = st.sampled_from([*EACH_QUERY, *AGGREGATES])
BUDGETED = AqKSlack(max_amended=0.3, reserve=1, max_ahead="20 us", support=4, patience=7)
POLICIES = st.sampled_from([*EACH_POLICY, BUDGETED])
EVENTS: st.SearchStrategy[list[local.Event]] = st.lists(
    st.one_of(tables(clean=False), tables(clean=False), tables(clean=False), st.builds(local.Drain)), max_size=8
)
FOREVER = AmendRule(1_000_000)


@dataclass
class Answers:
    """The versions of each window in the order in which they came."""

    versions: dict[int, list[Counter[str]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, outcome: local.StepOutcome, columns: Sequence[str]) -> set[int]:
        """Take the answers of an event, and return their windows."""
        for answer in outcome.answers:
            assert answer.version == len(self.versions[answer.window]), "versions are consecutive"
            assert set(answer.rows["version"].to_pylist()) <= {answer.version}
            assert set(answer.rows["empty"].to_pylist()) <= {False}
            self.versions[answer.window].append(multiset(answer.rows.select(columns)))
        assert len({answer.window for answer in outcome.answers}) == len(outcome.answers), "a window once per event"
        return {answer.window for answer in outcome.answers}

    @property
    def last(self) -> dict[int, Counter[str]]:
        return {window: versions[-1] for window, versions in self.versions.items()}


def entered(taken: pa.Table, event: local.Event, outcome: local.StepOutcome) -> tuple[pa.Table, pa.Table]:
    """Return the rows that have entered after an event, and those of them that came with it.

    Rows of an event are rejected with it, or held; held rows may be abandoned with a later event.
    """
    came = event.rows if isinstance(event, local.Readmission) else event
    came = SCHEMA.empty_table() if isinstance(came, local.Drain) else came
    gone = Counter(repr(row) for rows in outcome.rejection.rows for row in rows.drop_columns("reason").to_pylist())
    came, taken = without(came, gone), without(taken, gone)
    assert not +gone, "a row is rejected once"
    return pa.concat_tables([taken, came]), came


def without(rows: pa.Table, gone: Counter[str]) -> pa.Table:
    """Return the rows that are not among those in `gone`, from which the others are taken."""
    kept = []
    for at, row in enumerate(rows.to_pylist()):
        if gone[repr(row)]:
            gone[repr(row)] -= 1
        else:
            kept.append(at)
    return rows.take(pa.array(kept, pa.int64()))


def without_lateness(plan: Plan, rows: pa.Table, passed: set[int]) -> dict[int, Counter[str]]:
    """Return the answer of each window in `passed` that has a row, by the definition of the query."""
    times, query, found = micros_of(rows), plan.query, {}
    for window in passed:
        start, end = plan.windows.bounds(window)
        inside = [at for at, time in enumerate(times) if time is not None and start <= time < end]
        if inside:
            found[window] = multiset(query.lower(query.combine([query.lift(rows.take(pa.array(inside)))])))
    return found


def windows_over(w: Windows, times: Sequence[int | None]) -> Iterator[int]:
    return (k for time in times if time is not None for k in w.windows_of(w.pane_at(time)))


@given(QUERIES, windows(), EVENTS, POLICIES, st.sampled_from([1, 7, 30, 1_000_000]), st.sampled_from([1, 400, 1 << 30]))
def test_the_last_versions_are_the_answers_of_a_run_in_which_no_row_that_entered_was_late(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy, within: int, max_bytes: int
):
    """After each event, whatever is kept: a row enters all of its windows or none, and other windows are untouched."""
    plan = Plan(query, w, "time", policy, amend=AmendRule(within, max_bytes))
    columns = query.output_schema(SCHEMA).names
    taken, answers, answered = SCHEMA.empty_table(), Answers(), set[int]()
    ever_amended = set[int]()
    for event, outcome in zip(events, local.run(plan, events), strict=True):
        taken, came = entered(taken, event, outcome)
        again = answers.take(outcome, columns)
        touched = set(windows_over(w, micros_of(came)))
        assert again & answered == touched & answered, "the windows of late rows are answered again, and only those"
        again_windows, amended = len(again & answered), outcome.amended
        assert amended is not None
        ever_amended |= {answer.window for answer in outcome.answers[: amended.windows]}
        answered |= again
        # Windows of held rows are not answered yet.
        assert answers.last == without_lateness(plan, taken, answered)
        assert amended.bytes <= max_bytes
        assert amended.windows >= again_windows
        assert (amended.all_answered, amended.all_amended) == (len(answered), len(ever_amended))


@given(QUERIES, windows(), st.lists(tables(), max_size=6), st.lists(st.integers(0, 60), max_size=5))
def test_the_last_versions_do_not_depend_on_the_cut_into_batches(
    query: Query, w: Windows, batches: list[pa.Table], cuts: list[int]
):
    plan = Plan(query, w, "time", Watermark("3 us"), amend=FOREVER)
    columns = query.output_schema(SCHEMA).names

    def last(events: Sequence[local.Event]) -> dict[int, Counter[str]]:
        answers = Answers()
        for outcome in local.run(plan, events):
            answers.take(outcome, columns)
        return answers.last

    whole = pa.concat_tables([SCHEMA.empty_table(), *batches])
    assert last(batches) == last([whole]) == last(split(whole, [min(cut, whole.num_rows) for cut in cuts]))


@given(QUERIES, windows(), EVENTS, POLICIES)
def test_rows_that_are_repaired_and_readmitted_are_in_their_windows(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy
):
    """The punctuation does not move, and they are counted once."""
    plan, reason = Plan(query, w, "time", policy, amend=FOREVER), "null x"
    columns, answers, answered = query.output_schema(SCHEMA).names, Answers(), set[int]()
    rejected = [rows for outcome in local.run(plan, events) for rows in outcome.rejection.rows]
    rows = pa.concat_tables([SCHEMA.append(pa.field("reason", pa.string())).empty_table(), *rejected])
    rows = rows.filter(pc.field("reason") == reason).drop_columns("reason")
    rows = rows.set_column(1, "x", pa.array([0.5] * rows.num_rows, pa.float64()))
    whole = [*events, local.Readmission(rows, reason)]
    taken = SCHEMA.empty_table()
    for event, outcome in zip(whole, local.run(plan, whole), strict=True):
        taken, _ = entered(taken, event, outcome)
        answered |= answers.take(outcome, columns)
        assert answers.last == without_lateness(plan, taken, answered)
        outcome.totals.check()
    assert outcome.totals.read == sum(event.num_rows for event in events if isinstance(event, pa.Table))


@given(windows(), st.lists(tables(), max_size=8), st.sampled_from([1, 7, 30]))
def test_a_row_is_late_when_its_first_window_is_final(w: Windows, batches: list[pa.Table], within: int):
    plan = Plan(Bag(("x", "y")), w, "time", Watermark("2 us"), amend=AmendRule(within))
    punctuation: int | None = None
    for batch, outcome in zip(batches, local.run(plan, batches), strict=True):
        times = [time for time in micros_of(batch) if time is not None]
        final = [
            time
            for time in times
            if punctuation is not None and w.bounds(w.windows_of(w.pane_at(time))[0])[1] + within <= punctuation
        ]
        assert outcome.rejection.reasons == ({"late": len(final)} if final else {})
        newest = [*times, *([] if punctuation is None else [punctuation + 2])]
        punctuation = max(newest) - 2 if newest else None


@given(windows(), EVENTS, POLICIES.filter(lambda policy: policy.amend_budget is None))
def test_every_window_that_is_answered_without_amendments_has_a_first_version_with_them(
    w: Windows, events: list[local.Event], policy: ProgressPolicy
):
    """In the same event: the policy decides the same, whether late rows amend or are dropped."""
    plain = Plan(SKYLINE, w, "time", policy)
    dropped = {answer.window for answer in local.answers(plain, events)}
    first = {answer.window for answer in local.answers(replace(plain, amend=FOREVER), events) if not answer.version}
    assert dropped <= first


def assert_changes_add_up(whole: Plan, events: Sequence[local.Event]) -> None:
    """The changes of each version turn the rows of the version before into its own, and none takes another back."""
    assert whole.amend is not None
    changing = replace(whole, amend=replace(whole.amend, changes=True))
    columns = [*(["early"] if whole.early else []), *whole.query.output_schema(SCHEMA).names]
    current = defaultdict[int, Counter[str]](Counter)
    for versions, changes in zip(local.run(whole, events), local.run(changing, events), strict=True):
        for version, change in zip(versions.answers, changes.answers, strict=True):
            assert (change.window, change.version, change.early) == (version.window, version.version, version.early)
            assert set(change.rows["version"].to_pylist()) <= {version.version}
            added, removed = (
                multiset(change.rows.filter(pc.field("action") == action).select(columns)) for action in ("ADD", "DEL")
            )
            assert removed <= current[change.window]
            assert not removed & added
            current[change.window] += added
            current[change.window] -= removed
            assert current[change.window] == multiset(version.rows.select(columns))


@given(QUERIES, windows(), EVENTS, POLICIES, st.sampled_from([7, 1_000_000]))
def test_changes_add_up_to_the_versions(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy, within: int
):
    """A row that is in both versions is in no change."""
    assert_changes_add_up(Plan(query, w, "time", policy, amend=AmendRule(within)), events)


def rows_of(plan: Plan, batches: Sequence[local.Event]) -> list[list[tuple[int, int, list[Any]]]]:
    """Return the window, the version and the labels of each answer, by event."""
    return [
        [(answer.window, answer.version, answer.rows["label"].to_pylist()) for answer in outcome.answers]
        for outcome in local.run(plan, batches)
    ]


def test_a_late_row_re_answers_the_windows_that_hold_it():
    plan = Plan(Bag(()), Windows(4, 2), "time", Watermark("0 us"), amend=AmendRule(10))
    late = table([3], [9.0])
    assert rows_of(plan, [table([1, 3, 5, 7, 9]), late, late]) == [
        [(-1, 0, ["r0"]), (0, 0, ["r0", "r1"]), (1, 0, ["r1", "r2"]), (2, 0, ["r2", "r3"])],
        [(0, 1, ["r0", "r1", "r0"]), (1, 1, ["r1", "r0", "r2"])],
        [(0, 2, ["r0", "r1", "r0", "r0"]), (1, 2, ["r1", "r0", "r0", "r2"])],
    ]


def test_a_window_that_had_no_rows_gets_its_first_version():
    plan = Plan(Bag(()), Windows(2, 2), "time", Watermark("0 us"), amend=AmendRule(10))
    assert rows_of(plan, [table([0, 9]), table([4]), table([4])])[1:] == [[(2, 0, ["r0"])], [(2, 1, ["r0", "r0"])]]


def test_the_oldest_panes_are_discarded_when_they_take_too_many_bytes():
    one = table([0]).nbytes
    plan = Plan(Bag(()), Windows(2, 2), "time", Watermark("0 us"), amend=AmendRule(1_000, max_bytes=5 * one // 2))
    outcomes = list(local.run(plan, [table([0]), table([2]), table([4]), table([20]), table([0, 2, 4])]))
    counts = [outcome.amended for outcome in outcomes]
    assert [count and (count.panes, count.discarded) for count in counts] == [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1)]
    assert outcomes[-1].rejection.reasons == {"late": 1}
    assert [(answer.window, answer.version) for answer in outcomes[-1].answers] == [(1, 1), (2, 1)]


def test_a_rule_that_keeps_nothing_is_refused():
    with pytest.raises(ConfigError, match="within must be longer than 0"):
        AmendRule(0)
    with pytest.raises(ConfigError, match="max_bytes must be at least 1"):
        AmendRule(1, 0)
