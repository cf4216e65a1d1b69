"""Rows far ahead of the rest, in Spark's streams: held until the stream has followed them, or has gone on without them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.jobs import job_of, latest, partials
from tests.engine.test_drain import Forgetful
from tests.rows import Bag
from tests.runtime.streams import SECOND, AnySession, ended, expected, finish, parquet_rows, windows_of, write_batches

import skypane as sp
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.testing import Session
from skypane.windows import Windows

START = 1_700_000_000 * SECOND
WEEK = 7 * 86_400 * SECOND
WINDOWS = Windows(20 * SECOND, 10 * SECOND)


def plan(policy: sp.ProgressPolicy) -> Plan:
    return Plan(Skyline(sp.low("price") * sp.high("rating"), ()), WINDOWS, "ts", policy)


def rows(first: int, times: list[int]) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(range(first, first + len(times))),
            "ts": pa.array([START + time for time in times], pa.timestamp("us", "UTC")),
            "price": pa.array(rng.integers(0, 6, len(times)).astype(np.float64)),
            "rating": pa.array(rng.integers(0, 6, len(times)).astype(np.float64)),
        }
    )


def seconds(first: int, last: int) -> list[int]:
    return [second * SECOND for second in range(first, last)]


def job(session: AnySession, folder: Path, of_plan: Plan, schema: pa.Schema, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"window": WINDOWS, "progress": of_plan.progress, "late": folder / "late"}
    return job_of(session, folder, of_plan.query, schema, **own | options)


def run_with_a_restart_after_each_batch(
    session: AnySession, folder: Path, of_plan: Plan, batches: list[pa.Table]
) -> list[sp.BatchMetrics]:
    """Each batch is run by an engine of its own: what it knows of those before, it has read from the ledger."""
    metrics: list[sp.BatchMetrics] = []
    for number, batch in enumerate(batches):
        write_batches(folder / "in", [batch], first=number)
        metrics += finish(job(session, folder, of_plan, batches[0].schema))
    return metrics


def rejected(folder: Path) -> Counter[tuple[int, str]]:
    if not any((folder / "late").glob("*.parquet")):
        return Counter()
    table = parquet_rows(folder / "late")
    return Counter(zip(table["id"].to_pylist(), table["reason"].to_pylist(), strict=True))


def test_a_stream_that_pauses_for_a_week_loses_no_row(session: Session, tmp_path: Path):
    week = WEEK // SECOND
    batches = [
        rows(0, seconds(0, 60)),
        rows(100, seconds(60, 100) + seconds(week, week + 10)),  # more rows before the pause than after it
        rows(200, seconds(week + 5, week + 40)),
        rows(300, seconds(week + 40, week + 80)),
    ]
    of_plan = plan(sp.KSlack())
    metrics = run_with_a_restart_after_each_batch(session, tmp_path, of_plan, batches)
    assert [batch.held_rows for batch in metrics] == [0, 10, 0, 0]
    assert metrics[1].newest == START + 99 * SECOND
    assert metrics[-1].seen_rows == sum(batch.num_rows for batch in batches)
    assert rejected(tmp_path) == Counter()
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(of_plan, batches)


def test_rows_of_wrong_clocks_are_quarantined_when_the_stream_continues(session: Session, tmp_path: Path):
    wrong = [52 * WEEK, 52 * WEEK + SECOND, 99 * WEEK]
    batches = [
        rows(0, seconds(0, 40)),
        rows(100, [*seconds(40, 60), *wrong]),
        rows(200, [*seconds(60, 80), wrong[0]]),
        rows(300, seconds(80, 120)),
        rows(400, seconds(120, 140)),
    ]
    of_plan = plan(sp.KSlack(patience=30))
    metrics = run_with_a_restart_after_each_batch(session, tmp_path, of_plan, batches)
    # 20 rows have come since with the third batch, 60 with the fourth.
    assert [batch.held_rows for batch in metrics] == [0, 3, 4, 0, 0]
    assert [batch.quarantined for batch in metrics] == [{}, {}, {}, {"future": 4}, {}]
    assert rejected(tmp_path) == Counter((row, "future") for row in (120, 121, 122, 220))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(of_plan, batches)
    assert metrics[-1].newest == START + 139 * SECOND


def test_what_is_held_lies_in_the_checkpoint_and_is_removed_with_its_end(session: Session, tmp_path: Path):
    of_plan = plan(sp.KSlack(patience=10))
    batches = [rows(0, seconds(0, 40)), rows(100, [*seconds(40, 60), WEEK]), rows(200, seconds(60, 80))]
    named = []
    for number, batch in enumerate(batches):
        write_batches(tmp_path / "in", [batch], first=number)
        finish(job(session, tmp_path, of_plan, batch.schema))
        named.append({ref[0] for ref in json.loads(json.dumps(latest(tmp_path).operator))["ahead"]})
        assert named[-1] <= partials(tmp_path)
    assert [len(files) for files in named] == [0, 1, 0]
    assert not named[1] & partials(tmp_path)


def drained(session: AnySession, folder: Path, schema: pa.Schema) -> sp.BatchMetrics:
    """Start the job of the bag once more, over what is there already or new, and drain it."""
    metrics = ended(job(session, folder, BAG, schema)).drain()
    assert metrics is not None
    return metrics


def rejected_by(of_plan: Plan, events: list[local.Event]) -> Counter[tuple[int, str]]:
    """The rejected rows by the definition."""
    tables = [table for outcome in local.run(of_plan, events) for table in outcome.rejection.rows]
    return Counter((row["id"], row["reason"]) for table in tables for row in table.to_pylist())


def games(weeks: int, per_game: int) -> pa.Table:
    return rows(0, [week * WEEK + n * SECOND for week in range(weeks) for n in range(per_game)])


BAG = Plan(Bag(()), WINDOWS, "ts", sp.KSlack())
A_YEAR_AHEAD = [rows(0, seconds(0, 60)), rows(100, [*seconds(60, 80), 52 * WEEK])]
"""Batches whose last row is."""
SCHEMA = A_YEAR_AHEAD[0].schema


@pytest.mark.parametrize("batches", [1, 5])
def test_a_season_of_weekly_games_is_answered_whole_after_a_drain(batches: int, session: Session, tmp_path: Path):
    """The last game is cut off after ten rows: the weeks before speak for them."""
    season = games(5, 40).slice(0, 170)
    size = season.num_rows // batches
    cut = [season.slice(at, size) for at in range(0, season.num_rows, size)]
    before = run_with_a_restart_after_each_batch(session, tmp_path, BAG, cut)
    assert before[-1].held_rows >= 10
    metrics = drained(session, tmp_path, season.schema)
    assert (metrics.held_rows, metrics.open_panes, metrics.quarantined, metrics.late_rows) == (0, 0, {}, 0)
    assert metrics.totals == {"read": 170, "answered": 170, "late": 0, "quarantined": 0, "held": 0, "open": 0}
    answered = parquet_rows(tmp_path / "out")
    assert set(answered["id"].to_pylist()) == set(season["id"].to_pylist())
    assert windows_of(answered) == expected(BAG, [*cut, local.Drain()])


def test_a_row_a_year_ahead_ends_in_the_late_sink_with_a_drain_and_the_stream_continues(
    session: Session, tmp_path: Path
):
    before = run_with_a_restart_after_each_batch(session, tmp_path, BAG, A_YEAR_AHEAD)
    assert (before[-1].held_rows, before[-1].totals["held"], rejected(tmp_path)) == (1, 1, Counter())
    metrics = drained(session, tmp_path, SCHEMA)
    assert (metrics.rows, metrics.quarantined, metrics.held_rows) == (0, {"future": 1}, 0)
    assert metrics.totals == {"read": 81, "answered": 80, "late": 0, "quarantined": 1, "held": 0, "open": 0}
    assert rejected(tmp_path) == Counter({(120, "future"): 1})
    assert not partials(tmp_path), "nothing is open, nothing is held"

    more = rows(200, [75 * SECOND, *seconds(95, 120)])  # the first is in a window that the drain has answered
    write_batches(tmp_path / "in", [more], first=2)
    drained(session, tmp_path, SCHEMA)
    events: list[local.Event] = [*A_YEAR_AHEAD, local.Drain(), more, local.Drain()]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(BAG, events)
    assert rejected(tmp_path) == rejected_by(BAG, events) == Counter({(120, "future"): 1, (200, "late"): 1})


def test_a_checkpoint_of_before_pauses_and_rows_were_counted_continues(session: Session, tmp_path: Path):
    """Rows are counted from there on, and those that are held."""
    run_with_a_restart_after_each_batch(session, tmp_path, BAG, A_YEAR_AHEAD)
    manifest = latest(tmp_path)
    del manifest.operator["account"], manifest.progress["pauses"]
    document = {"format": 2} | {name: getattr(manifest, name) for name in Manifest.__slots__}
    ledger = DocumentStore.at(tmp_path / "checkpoint" / "skypane" / "ledger")
    ledger.write_json(f"{manifest.batch_id:012d}.json", document)
    write_batches(tmp_path / "in", [rows(200, seconds(80, 100))], first=2)
    metrics = drained(session, tmp_path, SCHEMA)
    assert metrics.totals == {"read": 21, "answered": 20, "late": 0, "quarantined": 1, "held": 0, "open": 0}
    assert len(set(parquet_rows(tmp_path / "out")["id"].to_pylist())) == 100


def test_a_batch_that_spark_brings_again_is_counted_once(session: Session, tmp_path: Path):
    run_with_a_restart_after_each_batch(session, tmp_path, BAG, A_YEAR_AHEAD)
    committed = tmp_path / "checkpoint" / "commits" / "1"
    committed.unlink()
    committed.with_name(".1.crc").unlink(missing_ok=True)
    write_batches(tmp_path / "in", [rows(200, seconds(80, 100))], first=2)
    reported = finish(job(session, tmp_path, BAG, SCHEMA))
    assert committed.exists(), "the batch has come again"
    assert [(batch.batch_id, batch.totals["read"]) for batch in reported] == [(2, 101)]


def test_a_lost_row_stops_the_query_before_anything_of_the_batch_is_reported(session: Session, tmp_path: Path):
    """The policy says that one row of a pane is quarantined, which it has never held; the pane has ten."""
    of_plan = replace(BAG, progress=Forgetful("0 seconds", pane=START + 50 * SECOND, length=10 * SECOND))
    write_batches(tmp_path / "in", [rows(0, seconds(0, 60)), rows(100, seconds(60, 80))])
    reported: list[sp.BatchMetrics] = []
    handle = job(session, tmp_path, of_plan, SCHEMA).start(trigger="available now", on_batch=reported.append)
    numbers = r"9 of 80 rows read .* would be lost: 60 answered \+ 0 late \+ 1 quarantined \+ 0 held \+ 10 open = 71"
    with pytest.raises(sp.SkypaneError, match=numbers):
        handle.await_termination(600)
    assert [batch.batch_id for batch in reported] == [0]
    assert latest(tmp_path).batch_id == 0
    assert max(parquet_rows(tmp_path / "out")["id"].to_pylist()) < 60


@pytest.mark.parametrize(
    "policy", [sp.AqKSlack(0.2), sp.Watermark("20 seconds")], ids=lambda policy: type(policy).__name__
)
def test_a_line_of_each_batch_states_why_it_waits_and_for_which_source(
    policy: sp.ProgressPolicy, session: Session, tmp_path: Path
):
    times = [seconds(0, 40), seconds(20, 60)]
    meters = [["meter 4"] * 40, ["meter 3"] * 10 + ["meter 4"] * 30]
    batches = [
        rows(100 * number, drawn).append_column("meter", [names])
        for number, (drawn, names) in enumerate(zip(times, meters, strict=True))
    ]
    write_batches(tmp_path / "in", batches)
    metrics = finish(job(session, tmp_path, plan(policy), batches[0].schema, source="meter"))
    lines = [decision.because for batch in metrics if (decision := batch.decision("progress"))]
    assert len(lines) == len(metrics)
    assert all(lines)
    last = metrics[-1].decision("progress")
    assert last is not None
    if isinstance(policy, sp.AqKSlack):
        assert "the longest delay seen" in lines[-1]
        assert lines[-1].endswith("; most late rows are from meter 3")
        assert metrics[-1].late_by_source == {"meter 3": 10}
        assert last.figures["credit"] == pytest.approx(0.2 * 80 - metrics[-1].dropped_rows)
