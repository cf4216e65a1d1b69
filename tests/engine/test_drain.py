"""What a drain makes of rows far ahead, by the definition: each is in an answer or in quarantine, for any cut into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import Bag, chunked, micros_of, split, table, tables, windows

from skypane.plan import Plan
from skypane.policy import Decision
from skypane.progress import AqKSlack, KSlack, PaneArrivals, ProgressPolicy, Watermark
from skypane.progress.far_future import HeldPane, HeldPanes
from skypane.progress.progress_policy import Punctuation
from skypane.progress.state import Progress
from skypane.runtime import local
from skypane.types import SkypaneError
from skypane.windows import Windows

DAY = 86_400_000_000
HOUR = DAY // 24
START = 20_089 * DAY  # 2025-01-01, a Wednesday
DAILY = Plan(Bag(()), Windows.of("1 day"), "time", KSlack())
DENSE = replace(DAILY, windows=Windows.of("10 minutes"))


def rejected_at_a_drain(plan: Plan, rows: pa.Table, cuts: Sequence[int] = ()) -> list[int]:
    """Return the times of the rows that are rejected as future; all others must be in an answer then, and in its place."""
    outcomes = list(local.run(plan, [*split(rows, cuts), local.Drain()]))
    rejected = [row for outcome in outcomes for part in outcome.rejection.rows for row in part.to_pylist()]
    assert {row["reason"] for row in rejected} <= {"future"}
    answered = [row for outcome in outcomes for answer in outcome.answers for row in answer.rows.to_pylist()]
    left = Counter(row["label"] for row in rows.to_pylist()) - Counter(row["label"] for row in rejected)
    assert {row["label"] for row in answered} == set(left)
    times = zip(micros_of(rows), rows["label"].to_pylist(), strict=True)
    return sorted(time for time, label in times if label not in left and time is not None)


CUTS = st.lists(st.integers(0, 300), max_size=8)
"""Rows after which a batch ends; those beyond the last row make empty batches."""


def cut(rows: pa.Table, cuts: Sequence[int]) -> list[int]:
    return [min(at, rows.num_rows) for at in cuts]


def prices(days: Sequence[int], per_day: int = 20) -> pa.Table:
    """Return so many rows at 17:00 of each day."""
    return table([START + day * DAY + 17 * HOUR for day in days for _ in range(per_day)])


@pytest.mark.parametrize("length", ["7 days", "1 day", "1 hour"])
@pytest.mark.parametrize("batches", [1, 2, 12, 52, 261, pytest.param(5_220, marks=pytest.mark.slow)])
def test_a_year_of_daily_prices_is_answered_whole(length: str, batches: int):
    rows = prices([day for day in range(365) if (day + 2) % 7 < 5])  # day 0 is a Wednesday
    size = -(-rows.num_rows // batches)
    plan = replace(DAILY, windows=Windows.of(length))
    assert rejected_at_a_drain(plan, rows, range(size, rows.num_rows, size)) == []


@given(st.lists(st.integers(1, 3), max_size=12), CUTS)
def test_a_daily_stream_is_answered_whole_whatever_the_gaps_and_the_cut(gaps: list[int], cuts: list[int]):
    rows = prices(list(accumulate(gaps, initial=0)))
    assert rejected_at_a_drain(DAILY, rows, cut(rows, cuts)) == []


@given(st.integers(1, 30), CUTS)
def test_the_last_day_may_have_come_in_part(last: int, cuts: list[int]):
    """After a weekend a single row is not a surprise, if there was a weekend before."""
    days = prices([0, 1, 2, 5, 6, 7, 8, 9])
    rows = pa.concat_tables([days, prices([12], last)])
    rows = rows.set_column(3, "label", pa.array([f"r{i}" for i in range(rows.num_rows)]))
    assert rejected_at_a_drain(DAILY, rows, cut(rows, cuts)) == []


@given(st.integers(2, 12), st.integers(16, 25), CUTS)
def test_weekly_games_are_answered_whole(weeks: int, per_game: int, cuts: list[int]):
    rows = table([START + week * 7 * DAY + n * HOUR // 12 for week in range(weeks) for n in range(per_game)])
    assert rejected_at_a_drain(DENSE, rows, cut(rows, cuts)) == []


@given(st.integers(1, 40), st.integers(2, 30), CUTS)
def test_a_stream_of_single_rows_is_answered_whole(rows: int, days: int, cuts: list[int]):
    drawn = table([START + n * days * DAY for n in range(rows)])
    assert rejected_at_a_drain(DAILY, drawn, cut(drawn, cuts)) == []


MINUTE = 60_000_000
MINUTES = [START + n * MINUTE for n in range(100)]


@given(
    st.lists(st.sampled_from([30 * DAY, 365 * DAY, 366 * DAY, 800 * DAY]), min_size=1, max_size=10),
    st.lists(st.integers(60, 200), min_size=10, max_size=10),
    st.lists(st.integers(-3, 0), min_size=200, max_size=200),
    CUTS,
)
def test_a_handful_of_rows_a_year_ahead_of_a_dense_stream_is_quarantined(
    wrong: list[int], places: list[int], delays: list[int], cuts: list[int]
):
    """One clock or several, in order or not, whatever the cut: the first batch only must not be made of them."""
    times = [START + (n + delay) * MINUTE for n, delay in enumerate(delays)]
    for ahead, place in zip(wrong, places, strict=False):
        times.insert(place, START + place * MINUTE + ahead)
    rows = table(times)
    found = rejected_at_a_drain(
        replace(DENSE, progress=Watermark("1 hour")), rows, [at for at in cut(rows, cuts) if at >= 50]
    )
    assert len(found) == len(wrong)
    assert min(found) >= START + 30 * DAY


def test_a_stream_that_pauses_for_a_month_and_ends_with_three_rows():
    """Nothing speaks for them, unless it has paused before; sixteen rows speak for themselves."""
    month, again = START + 30 * DAY, START + 60 * DAY
    assert rejected_at_a_drain(DENSE, table([*MINUTES, month, month + 1, month + 2])) == [month, month + 1, month + 2]
    assert rejected_at_a_drain(DENSE, table([*MINUTES, *range(month, month + 16)])) == []
    assert rejected_at_a_drain(DENSE, table([*MINUTES, *range(month, month + 40), again])) == []


def test_two_far_clusters_are_accepted_no_further_than_they_have_rows():
    year, two = START + 365 * DAY, START + 730 * DAY
    assert rejected_at_a_drain(DENSE, table([*MINUTES, year, two])) == [year, two]
    assert rejected_at_a_drain(DENSE, table([*MINUTES, *range(year, year + 20), two])) == []  # after a year one more
    lone = START + 10 * DAY
    assert rejected_at_a_drain(DENSE, table([*MINUTES, lone, *range(year, year + 20)])) == []  # time has passed over it


def test_rows_that_the_stream_has_gone_on_without_are_quarantined_however_many():
    """Twenty rows ahead and forty that came after them, elsewhere: one batch could not show it."""
    first, then = MINUTES[:40], MINUTES[40:80]
    ahead = [START + 365 * DAY + n for n in range(20)]
    rows = table([*first, *ahead, *then])
    assert rejected_at_a_drain(DENSE, rows, [60]) == ahead
    assert rejected_at_a_drain(DENSE, rows) == []


@given(st.integers(1, 60), st.integers(0, 60), CUTS)
def test_a_first_row_of_1970_does_not_admit_one_a_year_ahead(good: int, more: int, cuts: list[int]):
    rows = table([0, *(START + n * MINUTE for n in range(good + more + 2)), START + 365 * DAY])
    assert rejected_at_a_drain(DENSE, rows, cut(rows, cuts)) == [START + 365 * DAY]


STEPS = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 9, 11, 30, 45, 100, 130, 500, 3_000]), max_size=60)


@given(STEPS, CUTS, st.integers(1, 12), st.integers(1, 4))
def test_a_stream_in_order_gives_the_same_answers_for_any_cut(
    steps: list[int], cuts: list[int], support: int, pane: int
):
    """Dense runs, pauses of every length, single rows: no row is late, and a drain makes up for what batches did not know."""
    rows = table(list(accumulate(steps, initial=0)))
    plan = Plan(Bag(()), Windows(pane, pane), "time", Watermark("0 us", max_ahead="10 us", support=support))
    assert rejected_at_a_drain(plan, rows, cut(rows, cuts)) == rejected_at_a_drain(plan, rows)


EVENTS = st.lists(st.one_of(tables(clean=False), tables(clean=False), st.builds(local.Drain)), max_size=8)
NARROW = st.sampled_from(
    [
        Watermark("2 us", max_ahead="8 us", support=3, patience=5),
        KSlack(max_ahead="15 us", patience=9),
        AqKSlack(0.05, max_ahead="15 us", support=4),
        KSlack(),
    ]
)


@given(windows(), EVENTS, NARROW)
def test_every_row_is_somewhere_and_in_one_place_after_every_event(
    w: Windows, events: list[local.Event], policy: ProgressPolicy
):
    """What the account counts, held against the rows themselves."""
    read = rejected = late = 0
    answered: set[tuple[int, str]] = set()
    rows_of = [
        chunked(event, []).set_column(3, "label", pa.array([f"{n} {i}" for i in range(event.num_rows)], pa.string()))
        if isinstance(event, pa.Table)
        else event
        for n, event in enumerate(events)
    ]
    for event, outcome in zip(rows_of, local.run(Plan(Bag(("x", "y")), w, "time", policy), rows_of), strict=True):
        read += event.num_rows if isinstance(event, pa.Table) else 0
        late += outcome.rejection.late_rows
        rejected += sum(outcome.rejection.quarantined.values())
        answered |= {row["label"] for answer in outcome.answers for row in answer.rows.to_pylist()}
        totals = outcome.totals
        assert (totals.read, totals.answered, totals.late, totals.quarantined) == (read, len(answered), late, rejected)
        assert totals.held + totals.open == read - len(answered) - late - rejected
        if isinstance(event, local.Drain):
            assert totals.held == totals.open == 0


def test_a_stream_continues_after_a_drain_from_the_accepted_rows():
    """Windows of ten minutes: the month's row is answered, one in the same window is late then, the next window is not."""
    month = START + 30 * DAY
    first, then = table([START, *range(month, month + 16)]), table([month + 20, month + 10 * MINUTE])
    plan = replace(DENSE, progress=Watermark("0 us"))
    outcomes = list(local.run(plan, [first, local.Drain(), then, local.Drain()]))
    assert [len(outcome.answers) for outcome in outcomes] == [1, 1, 0, 1]
    assert [outcome.rejection.reasons for outcome in outcomes] == [{}, {}, {"late": 1}, {}]


def test_a_row_that_a_drain_has_made_late_is_not_held_besides():
    """Its windows reach further than max_ahead: the punctuation of a drain lies beyond all that may be held."""
    plan = Plan(Bag(()), Windows(1_000, 1_000), "time", Watermark("0 us", max_ahead="10 us"))
    events = [table([0, 3]), local.Drain(), table([900, 1_005, 5_000])]
    last = list(local.run(plan, events))[-1]
    assert last.rejection.reasons == {"late": 1}
    assert (last.totals.read, last.totals.late, last.totals.held, last.totals.open) == (5, 1, 1, 1)


@dataclass(frozen=True)
class Forgetful(Watermark):
    """Abandons a row of the pane of this length that starts at `pane`, which it has never held."""

    pane: int = 0
    length: int = 10

    def decide(self, state: Progress, known: PaneArrivals) -> tuple[Progress, Decision[Punctuation]]:
        after, decision = super().decide(state, known)
        wrong = HeldPanes((HeldPane(self.pane, self.pane + self.length, 1, self.pane, self.pane),))
        future = replace(decision.value.future, abandoned=wrong)
        return after, decision if state.newest is None else replace(
            decision, value=Punctuation(after.punctuation, future)
        )


def test_a_lost_row_stops_the_run_and_is_named():
    plan = Plan(Bag(()), Windows(10, 10), "time", Forgetful("100 us", pane=20))
    events: list[Any] = [table([1, 21, 22, 31]), table([41])]
    with pytest.raises(
        SkypaneError, match=r"2 of 5 rows read .* lost: 0 answered \+ 0 late \+ 0 quarantined \+ 0 held \+ 3 open"
    ):
        list(local.run(plan, events))
