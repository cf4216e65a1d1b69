"""Early answers against a naive definition, which counts the rows of each window."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.rows import SCHEMA, Bag, micros_of, multiset, table, windows
from tests.runtime.late.test_amended_local import EVENTS, FOREVER, POLICIES, QUERIES, assert_changes_add_up

from skypane.operators.amendments import AmendRule
from skypane.operators.answer_changes import answers_of
from skypane.operators.early_answers import EarlyRule
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.progress import ProgressPolicy, Watermark
from skypane.runtime import local
from skypane.types import ConfigError
from skypane.windows import Windows

EVERY = st.sampled_from([1, 5, 20, 1_000])
AMENDS = st.sampled_from([None, None, AmendRule(7), FOREVER])
FOLLOWING = st.sampled_from([Watermark("0 us"), Watermark("6 us"), Watermark("40 us")])
"""Policies by which the newest time of the stream is that of its newest row: they hold none, and follow every gap."""


@dataclass
class Accepted:
    """The rows that have been accepted so far: those that have come without rejected and held ones."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    held: int = 0

    def take(self, event: local.Event, outcome: local.StepOutcome) -> None:
        """Take an event; a row that is rejected now may have been held before."""
        self.rows += event.to_pylist() if isinstance(event, pa.Table) else []
        for rows in outcome.rejection.rows:
            for row in rows.drop_columns("reason").to_pylist():
                # NaN is not equal to itself.
                self.rows.pop([repr(one) for one in self.rows].index(repr(row)))
        self.held = outcome.totals.held

    @property
    def table(self) -> pa.Table:
        """The accepted rows; those that are held are the newest ones."""
        rows = sorted(self.rows, key=lambda row: row["time"])
        return pa.Table.from_pylist(rows[: len(rows) - self.held], schema=SCHEMA)


def inside(w: Windows, rows: pa.Table) -> dict[int, pa.Table]:
    """Return the rows of each window that has some."""
    found = defaultdict(list)
    for at, time in enumerate(micros_of(rows)):
        assert time is not None
        for window in w.windows_of(w.pane_at(time)):
            found[window].append(at)
    return {window: rows.take(pa.array(at)) for window, at in found.items()}


def answered(query: Query, rows: pa.Table) -> Counter[str]:
    return multiset(query.lower(query.combine([query.lift(rows)])))


def both(plan: Plan, events: Sequence[local.Event]) -> Iterator[tuple[local.StepOutcome, local.StepOutcome]]:
    """Yield the outcome of each event without and with early answers."""
    return zip(local.run(replace(plan, early=None), events), local.run(plan, events), strict=True)


@given(QUERIES, windows(), EVENTS, POLICIES, EVERY, AMENDS)
def test_an_early_answer_is_that_of_the_rows_accepted_so_far_and_all_others_are_as_without_it(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy, every: int, amend: AmendRule | None
):
    """Versions are consecutive, no window is early once it has ended, and one event answers a window at most once."""
    assume(amend is not None or policy.amend_budget is None)
    plan = Plan(query, w, "time", policy, amend=amend, early=every)
    columns, accepted = query.output_schema(SCHEMA).names, Accepted()
    versions, ended = Counter[int](), set[int]()
    for event, (without, outcome) in zip(events, both(plan, events), strict=True):
        accepted.take(event, outcome)
        at_end = [answer for answer in outcome.answers if not answer.early]
        assert [(answer.window, multiset(answer.rows.select(columns))) for answer in at_end] == [
            (answer.window, multiset(answer.rows.select(columns))) for answer in without.answers
        ]
        assert (outcome.totals, outcome.amended) == (without.totals, without.amended)
        ended |= {answer.window for answer in at_end}
        rows = inside(w, accepted.table)
        for answer in outcome.answers:
            assert answer.version == versions[answer.window]
            versions[answer.window] += 1
            assert set(answer.rows["version"].to_pylist()) <= {answer.version}
            assert set(answer.rows["early"].to_pylist()) <= {answer.early}
            if answer.early:
                assert answer.window not in ended
                assert multiset(answer.rows.select(columns)) == answered(query, rows[answer.window])
        assert len({answer.window for answer in outcome.answers}) == len(outcome.answers)


@given(windows(), EVENTS, FOLLOWING, EVERY, AMENDS)
def test_windows_that_have_begun_and_have_new_rows_are_answered_when_the_newest_time_has_moved_on(
    w: Windows, events: list[local.Event], policy: ProgressPolicy, every: int, amend: AmendRule | None
):
    plan, accepted = Plan(Bag(()), w, "time", policy, amend=amend, early=every), Accepted()
    last: int | None = None
    counts, ended = dict[int, int](), set[int]()
    for event, outcome in zip(events, local.run(plan, events), strict=True):
        accepted.take(event, outcome)
        rows = inside(w, accepted.table)
        ended |= {answer.window for answer in outcome.answers if not answer.early}
        newest = max((time for time in micros_of(accepted.table) if time is not None), default=None)
        expected = list[int]()
        if newest is not None and (last is None or newest - last >= every):
            last = newest
            expected = [
                window
                for window, some in sorted(rows.items())
                if window not in ended and w.bounds(window)[0] <= newest and counts.get(window) != some.num_rows
            ]
            counts |= {window: rows[window].num_rows for window in expected}
        assert [answer.window for answer in outcome.answers if answer.early] == expected


@given(QUERIES, windows(), EVENTS, POLICIES, EVERY, st.sampled_from([7, 1_000_000]))
def test_changes_add_up_to_the_versions(
    query: Query, w: Windows, events: list[local.Event], policy: ProgressPolicy, every: int, within: int
):
    """A row that is not early any more is removed and added, since it differs in that."""
    assert_changes_add_up(Plan(query, w, "time", policy, amend=AmendRule(within), early=every), events)


def rows_of(plan: Plan, events: Sequence[local.Event]) -> list[list[tuple[int, int, bool, list[Any]]]]:
    """Return the window, the version, whether it is early, and the labels of each answer, by event."""
    return [
        [(answer.window, answer.version, answer.early, answer.rows["label"].to_pylist()) for answer in outcome.answers]
        for outcome in local.run(plan, events)
    ]


PLAN = Plan(Bag(()), Windows(10, 10), "time", Watermark("0 us"), early=3)


def test_a_window_is_answered_before_its_end_and_at_its_end():
    """The last version is not early, although no rows have come since the one before it."""
    assert rows_of(PLAN, [table([0]), table([2]), table([3]), table([11])]) == [
        [(0, 0, True, ["r0"])],
        [],
        [(0, 1, True, ["r0", "r0", "r0"])],
        [(0, 2, False, ["r0", "r0", "r0"]), (1, 0, True, ["r0"])],
    ]


def test_a_window_without_new_rows_is_not_answered_again():
    plan = replace(PLAN, windows=Windows(20, 10), progress=Watermark("20 us"))
    assert rows_of(plan, [table([12]), table([22])]) == [
        [(0, 0, True, ["r0"]), (1, 0, True, ["r0"])],
        [(1, 1, True, ["r0", "r0"]), (2, 0, True, ["r0"])],
    ]


def test_an_amendment_follows_the_versions_before_the_end():
    plan = replace(PLAN, amend=FOREVER)
    assert rows_of(plan, [table([0]), table([11]), table([5])])[1:] == [
        [(0, 1, False, ["r0"]), (1, 0, True, ["r0"])],
        [(0, 2, False, ["r0", "r0"])],
    ]


def test_a_drain_answers_what_was_answered_early():
    assert rows_of(PLAN, [table([0]), local.Drain(), table([14]), local.Drain()]) == [
        [(0, 0, True, ["r0"])],
        [(0, 1, False, ["r0"])],
        [(1, 0, True, ["r0"])],
        [(1, 1, False, ["r0"])],
    ]


def test_held_rows_are_in_no_early_answer():
    """They are in the next one when the stream has followed them."""
    ahead = Watermark("70 us", max_ahead="20 us", support=3, patience=100)
    plan = replace(PLAN, windows=Windows(100, 50), progress=ahead)
    steps = rows_of(plan, [table([0, 60]), table([4]), table([61] * 6)])
    assert [[(window, len(labels)) for window, _, _, labels in step] for step in steps] == [
        [(-1, 1), (0, 1)],
        [(-1, 2), (0, 2)],
        [(0, 9), (1, 7)],
    ]


def test_versions_that_are_replaced_together_are_merged_apart():
    """A late row has amended window 0 since window 1 was answered early; now another one comes, for both."""
    first, late, new = table([12], [1.0]), table([13], [2.0]), table([14], [3.0])
    shown, before, now = (((1, rows),) for rows in ((first,), (first, late), (first, late, new)))
    query = replace(PLAN, windows=Windows(20, 10), amend=AmendRule(9, changes=True)).window_query(SCHEMA)
    tasks = [
        WindowTask(0, now, 2, WindowTask(0, before, 2)),
        WindowTask(1, now, 1, WindowTask(1, shown, 1, early=True), early=True),
    ]
    changes = [answer.rows for answer in answers_of(query.worker(), tasks, lambda partial: partial)]
    assert [list(zip(rows["action"].to_pylist(), rows["x"].to_pylist(), strict=True)) for rows in changes] == [
        [("ADD", 3.0)],
        [("ADD", 2.0), ("ADD", 3.0)],
    ]


def test_a_span_that_is_not_positive_is_refused():
    with pytest.raises(ConfigError, match="early must be longer than 0"):
        EarlyRule(0)
