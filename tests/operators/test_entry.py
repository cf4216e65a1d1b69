from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.rows import NAN, SCHEMA, chunked, micros_of, multiset, table, tables, windows

from skypane.operators.entry.entry_rules import Entry, EntryRules
from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.entry.reject_reasons import FUTURE, LATE, REASON, rankable
from skypane.operators.entry.rejected import Rejection
from skypane.types import ConfigError
from skypane.windows import Windows

REQUIRED = ("x", "y")
TENS = Windows(20, 10)
RULES = EntryRules(TENS, "time", REQUIRED)


def reason(row: dict[str, Any], time: int | None, w: Windows, first_open: int | None, limit: int | None) -> str | None:
    """Why a row is rejected, by the definition; None if it is not."""
    if time is None:
        return "null time"
    for name in REQUIRED:
        if row[name] is None:
            return f"null {name}"
        if np.isnan(row[name]):
            return f"NaN {name}"
    pane = w.pane_at(time)
    if first_open is not None and pane < first_open:
        return LATE
    if limit is not None and w.pane_start(pane) > limit:
        return FUTURE
    return None


def counts(times: list[int], w: Windows) -> list[PaneCount]:
    """The count of each pane, by the definition."""
    panes = sorted({w.pane_at(time) for time in times})
    members = {pane: [time for time in times if w.pane_at(time) == pane] for pane in panes}
    return [PaneCount(pane, len(of), min(of), max(of)) for pane, of in members.items()]


def total(entry: Entry) -> int:
    return sum(part.count.rows for part in entry.usable) + sum(entry.rejection.reasons.values())


@given(
    windows(), tables(clean=False), st.none() | st.integers(-20, 20), st.none() | st.integers(-60, 100), st.booleans()
)
def test_split_is_the_definition(w: Windows, rows: pa.Table, first_open: int | None, limit: int | None, keep: bool):
    given_rows = rows.to_pylist()
    micros = micros_of(rows)
    reasons = [reason(row, time, w, first_open, limit) for row, time in zip(given_rows, micros, strict=True)]

    entry = EntryRules(w, "time", REQUIRED, first_open=first_open, limit=limit, keep=keep).split(rows)

    usable = [time for time, why in zip(micros, reasons, strict=True) if why is None and time is not None]
    assert [part.count for part in entry.usable] == counts(usable, w)
    for part in entry.usable:
        of_pane = [
            row
            for row, time, why in zip(given_rows, micros, reasons, strict=True)
            if why is None and time is not None and w.pane_at(time) == part.pane
        ]
        assert part.rows.to_pylist() == of_pane, "rows of a pane keep their order and their columns"
        assert part.rows.schema == SCHEMA
    late = [time for time, why in zip(micros, reasons, strict=True) if why == LATE and time is not None]
    assert list(entry.rejection.late) == counts(late, w)
    assert entry.counts == (*(part.count for part in entry.usable), *entry.rejection.late)
    assert entry.rejection.reasons == {why: reasons.count(why) for why in reasons if why is not None}
    assert total(entry) == rows.num_rows
    if keep:
        rejected = [row | {REASON: why} for row, why in zip(given_rows, reasons, strict=True) if why is not None]
        assert multiset(pa.concat_tables(entry.rejection.rows)) if rejected else Counter() == multiset(rejected)
    else:
        assert entry.rejection.rows == ()


def test_a_row_has_one_reason_and_the_first_that_applies_counts():
    rows = table(
        #  null first  null x     NaN x     null y     NaN y     late      fine      future
        [None, 0, 0, 0, 0, 0, 15, 40],
        [None, None, NAN, 1.0, 1.0, 1.0, 1.0, 1.0],
        [None, NAN, None, None, NAN, 1.0, 1.0, 1.0],
    )
    entry = replace(RULES, first_open=1, limit=39, keep=True).split(rows)
    reasons = ["null time", "null x", "NaN x", "null y", "NaN y", LATE, FUTURE]
    assert entry.rejection.rows[0].column(REASON).to_pylist() == reasons
    assert entry.rejection.rows[0].column("label").to_pylist() == ["r0", "r1", "r2", "r3", "r4", "r5", "r7"]
    assert entry.rejection.reasons == dict.fromkeys(reasons, 1)
    assert entry.rejection.late == (PaneCount(0, 1, 0, 0),), "an unrankable row tells progress nothing"


def test_infinite_criteria_may_enter():
    entry = RULES.split(table([1, 2], [float("inf"), -float("inf")]))
    assert entry.rejection.reasons == {}
    assert total(entry) == 2


def test_a_pane_is_late_up_to_its_last_tick_and_future_from_its_first():
    rows = table([9, 10, 29, 30])
    entry = replace(RULES, first_open=1, limit=29).split(rows)
    assert [part.pane for part in entry.usable] == [1, 2]
    assert entry.rejection.reasons == {LATE: 1, FUTURE: 1}
    assert replace(RULES, first_open=1, limit=30).split(rows).rejection.reasons == {LATE: 1}, (
        "the pane that starts at the limit may enter"
    )


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize(("unit", "per_milli"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
def test_any_unit_and_zone_give_the_same_panes(unit: str, per_milli: int, zone: str | None):
    millis = [-11, -10, -1, 0, 3, 9, 10, None]
    ticks = pa.array([None if t is None else t * per_milli for t in millis], pa.int64())
    rows = pa.table({"t": ticks.cast(pa.timestamp(unit, zone))})
    w = Windows(20_000, 10_000)
    entry = EntryRules(w, "t", ()).split(rows)
    assert [part.count for part in entry.usable] == counts([t * 1_000 for t in millis if t is not None], w)
    assert entry.rejection.reasons == {"null t": 1}
    assert all(part.rows.schema == rows.schema for part in entry.usable)


def test_nanoseconds_are_rounded_down_before_the_epoch_too():
    rows = pa.table({"t": pa.array([-1_000, -1, 0, 999], pa.int64()).cast(pa.timestamp("ns"))})
    entry = EntryRules(Windows(1, 1), "t", ()).split(rows)
    assert [(part.pane, part.count.rows) for part in entry.usable] == [(-1, 2), (0, 2)]


def test_seconds_are_read():
    rows = pa.table({"t": pa.array([59, 60], pa.int64()).cast(pa.timestamp("s", "UTC"))})
    entry = EntryRules(Windows.of("1 minute"), "t", ()).split(rows)
    assert [(part.pane, part.count.oldest) for part in entry.usable] == [(0, 59_000_000), (1, 60_000_000)]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("offset", [-7, 0, 7])
def test_times_that_no_calendar_has_are_rejected_not_wrapped_around(unit: str, offset: int):
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    first = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * per_second
    end = (int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) + 86_400) * per_second
    limits = np.iinfo(np.int64)
    ticks = [first, end - 1, None, first - 1, end, limits.min, limits.max]
    rows = pa.table({"t": pa.array(ticks, pa.int64()).cast(pa.timestamp(unit))})
    entry = EntryRules(Windows(20, 10, offset), "t", (), keep=True).split(rows)
    assert sum(part.count.rows for part in entry.usable) == 2
    assert entry.rejection.reasons == {"null t": 1, "absurd t": 4}
    assert entry.rejection.rows[0].column("t").cast(pa.int64()).to_pylist() == ticks[2:], "kept as they came"


@pytest.mark.long
@pytest.mark.parametrize(("step", "seed"), slow_but([(100_000, 1)], [(10, None), (10, 1), (100_000, 1)]))
def test_many_panes_are_distinguished(step: int, seed: int | None):
    """More than 65,536 panes, or panes further apart than that: keys no longer fit the short sort."""
    at = np.arange(70_000) * step - 350_000
    if seed is not None:
        at = np.random.default_rng(seed).permutation(at)
    rows = table(at.tolist())
    entry = RULES.split(rows)
    assert [part.pane for part in entry.usable] == list(range(-35_000, -35_000 + 70_000 * (step // 10), step // 10))
    assert all(part.count == PaneCount(part.pane, 1, part.pane * 10, part.pane * 10) for part in entry.usable)
    again = pa.concat_tables([part.rows for part in entry.usable])
    assert again.equals(rows.sort_by("time"))


@given(st.lists(st.integers(-3 * 65_536, 3 * 65_536), max_size=6))
@example([65_535, 0])
@example([65_536, 0])
@example([65_537, 0])
def test_panes_around_the_limit_of_the_short_sort(panes: list[int]):
    rows = table([pane * 10 for pane in panes])
    entry = RULES.split(rows)
    assert [part.pane for part in entry.usable] == sorted(set(panes))
    assert [micros_of(part.rows) for part in entry.usable] == [
        [pane * 10] * panes.count(pane) for pane in sorted(set(panes))
    ]


@pytest.mark.parametrize("rows", [SCHEMA.empty_table(), pa.table(SCHEMA.empty_table(), SCHEMA).slice(0, 0),
                                  chunked(SCHEMA.empty_table(), [0, 0]), pa.Table.from_batches([], SCHEMA)])  # fmt: skip
def test_no_rows_are_accepted(rows: pa.Table):
    entry = replace(RULES, first_open=3, limit=9, keep=True).split(rows)
    assert (entry.usable, entry.rejection, entry.counts) == ((), Rejection(), ())


def test_rows_are_counted_by_source_the_late_ones_apart():
    rows = table([5, 1, 17, 3, 50, None, 7], [0.0, 0.0, 0.0, 0.0, NAN, 0.0, 0.0])
    rows = rows.append_column("from", pa.array(["b", "a", "b", None, "a", "c", "b"]))
    entry = EntryRules(TENS, "time", REQUIRED, source="from", first_open=1).split(rows)
    assert entry.sources == {"a": (1, 1, 1), "b": (3, 2, 17), "None": (1, 1, 3)}, "rows, of them late, newest time"
    assert entry.rejection.by_source == {"a": 1, "b": 2, "None": 1}
    assert replace(RULES, first_open=1).split(rows).rejection.by_source == {}


def test_a_row_that_amends_is_as_late_for_the_policy_as_one_that_is_dropped():
    rows = table([5, 11, 17, 23, 12], [0.0, 0.0, 0.0, 0.0, NAN])
    rows = rows.append_column("from", pa.array(["a", "a", "b", "b", "b"]))
    rules = EntryRules(TENS, "time", REQUIRED, source="from", first_open=2, amends_from=1)
    entry = rules.split(rows)
    assert entry.sources == {"a": (2, 2, 11), "b": (2, 1, 23)}, "rows, of them late, newest time"
    assert entry.sources == replace(rules, amends_from=None).split(rows).sources
    assert entry.rejection.by_source == {"a": 1}


def test_float32_and_whole_numbers_are_checked_for_what_they_can_be():
    rows = pa.table({
        "time": table([1, 2, 3]).column("time"),
        "x": pa.array([1, None, 2], pa.int32()),
        "y": pa.array([NAN, 1.0, None], pa.float32()),
    })  # fmt: skip
    assert RULES.split(rows).rejection.reasons == {"null x": 1, "NaN y": 1, "null y": 1}


def test_the_time_itself_may_be_a_criterion():
    rules = EntryRules(TENS, "time", ("time",))
    assert rules.split(table([None, 3])).rejection.reasons == {"null time": 1}


def test_input_buffers_are_left_as_they_were():
    rows = table([30, None, 1, 12], [1.0, 2.0, NAN, None])
    before = rows.to_pydict()
    replace(RULES, first_open=1, limit=5, keep=True).split(rows)
    assert multiset(rows) == multiset(pa.table(before, SCHEMA))


def test_merging_counts_spans_both():
    assert PaneCount(3, 2, 31, 35).merge(PaneCount(3, 1, 30, 30)) == PaneCount(3, 3, 30, 35)


@given(tables(clean=False))
def test_rankable_checks_the_criteria_alone(rows: pa.Table):
    usable, rejected = rankable(rows, REQUIRED)
    rankable_rows = [
        row for row in rows.to_pylist() if all(row[name] is not None and not np.isnan(row[name]) for name in REQUIRED)
    ]
    assert usable.to_pylist() == rankable_rows
    assert usable.num_rows + sum(rejected.values()) == rows.num_rows


@pytest.mark.parametrize(("gate", "message"), [
    (EntryRules(TENS, "when", ("x",)), "unknown column 'when'; there are time, x, y, label"),
    (EntryRules(TENS, "time", ("z",)), "unknown column 'z'; there are time, x, y, label"),
    (EntryRules(TENS, "time", ("x",), "src"), "unknown column 'src'; there are time, x, y, label"),
    (EntryRules(TENS, "x", ("y",)), "time column 'x' is of type double; cast it to a timestamp first"),
])  # fmt: skip
def test_a_schema_that_cannot_enter_is_refused(gate: EntryRules, message: str):
    with pytest.raises(ConfigError) as refused:
        gate.validate(SCHEMA)
    assert str(refused.value) == message


def test_dates_are_not_timestamps():
    with pytest.raises(ConfigError, match="is of type date32"):
        EntryRules(TENS, "d", ()).validate(pa.schema([("d", pa.date32())]))


def test_a_good_schema_passes():
    EntryRules(TENS, "time", REQUIRED, "label").validate(SCHEMA)


def test_rows_kept_are_the_input_rows_bit_for_bit():
    rng = np.random.default_rng(3)
    rows = table(rng.integers(-500, 500, 2_000).tolist(), rng.random(2_000).tolist(), rng.random(2_000).tolist())
    parts = [part.rows for part in RULES.split(chunked(rows, [7, 7, 1_000])).usable]
    key = [("label", "ascending")]
    assert pa.concat_tables(parts).combine_chunks().sort_by(key).equals(rows.sort_by(key))
