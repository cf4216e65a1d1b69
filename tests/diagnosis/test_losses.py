"""Streams in which something is wrong: the line of the log, and of all displays, names it, with rows; healthy ones have none."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.runtime.streams import SECOND, ended

import skypane as sp
from skypane.plan import Plan
from skypane.reporting.query_view import facts
from skypane.reporting.report import lines, render
from skypane.reporting.snapshot import Snapshot
from skypane.reporting.watching import view_from
from skypane.runtime.spark.committed_batches import CommittedBatches
from skypane.runtime.spark.engine.example_rows import ExampleStage
from skypane.runtime.spark.error_causes import cause as error_line
from skypane.testing import Session
from skypane.windows import Windows

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
T0 = 1_700_000_000 * SECOND
STEP = 20 * SECOND
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "source": pa.string(), "price": pa.float64()})
ADAPTIVE = sp.AqKSlack(0.01)

Rows = dict[str, Any]
"""Columns of a batch, as arrays: times in microseconds, sources and prices."""


def healthy(batches: int = 40, disorder: float = 2.0, seed: int = 5) -> Iterator[Rows]:
    """Yield the rows of a stream of five sources, which are late by a few seconds."""
    rng = np.random.default_rng(seed)
    for at in range(batches):
        times = np.sort(T0 + at * STEP + rng.integers(0, STEP, 100)) - rng.exponential(disorder * SECOND, 100).astype(
            np.int64
        )
        yield {
            "ts": times,
            "source": np.array([f"m{one}" for one in rng.integers(0, 5, 100)]),
            "price": rng.random(100),
        }


def of_source(name: str, change: Callable[[Any, int], Any]) -> Callable[[], Iterator[Rows]]:
    """Return a stream in which the times of one source are others."""

    def stream() -> Iterator[Rows]:
        for at, rows in enumerate(healthy()):
            mine = rows["source"] == name
            yield rows | {"ts": np.where(mine, change(rows["ts"], at), rows["ts"])}

    return stream


def changed(change: Callable[[Rows, int], Rows]) -> Callable[[], Iterator[Rows]]:
    return lambda: (rows | change(rows, at) for at, rows in enumerate(healthy()))


def joined(parts: Sequence[Rows]) -> Rows:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def where(rows: Rows, mask: Any) -> Rows:
    return {name: column[mask] for name, column in rows.items()}


def kept_for(which: Callable[[Rows], Any], batches: int) -> Iterator[Rows]:
    """Yield a stream in which some rows come all at once, every so many batches."""
    kept: list[Rows] = []
    for at, rows in enumerate(healthy(60)):
        mine = which(rows)
        kept.append(where(rows, mine))
        now = [where(rows, ~mine)]
        if at % batches == batches - 1:
            now += kept
            kept = []
        yield joined(now)


def blocks() -> Iterator[Rows]:
    """Yield a stream whose producer holds blocks of rows back, ever longer."""
    later: dict[int, Rows] = {}
    for at, rows in enumerate(healthy(60)):
        now = [rows]
        if at % 5 == 4:
            first = np.arange(100) < 40
            later[at + 2 + at // 5] = where(rows, first)
            now = [where(rows, ~first)]
        yield joined([*now, *([later.pop(at)] if at in later else [])])


def tables(stream: Iterable[Rows]) -> list[pa.Table]:
    return [pa.table({name: pa.array(rows[name], SCHEMA.field(name).type) for name in SCHEMA.names}) for rows in stream]


def run(session: Session, folder: Path, batches: Sequence[pa.Table], **options: Any) -> list[sp.BatchMetrics]:
    seen: list[sp.BatchMetrics] = []
    given: dict[str, Any] = {"window": "1 minute", "progress": ADAPTIVE, "source": "source", "output": folder / "out"}
    job = sp.stream(
        session.stream(batches), "price MIN", time="ts", checkpoint=folder / "checkpoint", **given | options
    )
    ended(job, on_batch=seen.append)
    return seen


def seconds_as_micros(rows: Rows, _: int) -> Rows:
    return {"ts": rows["ts"] // SECOND}


CASES: dict[str, tuple[Callable[[], Iterable[Rows]], Any, str, str]] = {
    "blocks in another order": (blocks, ADAPTIVE, "in whole blocks", "max_drop="),
    "a clock ahead": (of_source("m1", lambda ts, _: ts + HOUR), sp.Watermark("1 minute"), "clock of m1 is about 1 h", "ahead"),
    "a clock ahead that nobody waits for": (of_source("m1", lambda ts, _: ts + HOUR), ADAPTIVE, "m1 is about 1 h", "ahead"),
    "a clock behind": (of_source("m1", lambda ts, _: ts - HOUR), ADAPTIVE, "clock of m1 is about 1 h", "behind"),
    "a zone of a source": (of_source("m1", lambda ts, _: ts - 11 * HOUR // 2), ADAPTIVE, "m1 is about 5.5 h", "time zones"),
    "a device that uploads": (
        lambda: kept_for(lambda rows: rows["source"] == "m2", 20), ADAPTIVE, "m2 sends what it has kept", "sp.Amend",
    ),
    "a partition that lags": (
        lambda: kept_for(lambda rows: rows["source"] == "m2", 5), sp.Watermark("0 seconds"), "m2 comes up to", "sp.Readiness",
    ),
    "seconds as microseconds": (changed(seconds_as_micros), ADAPTIVE, "seconds were read as microseconds", "timestamp_seconds"),
    "a source in milliseconds": (of_source("m3", lambda ts, _: ts // 1_000), ADAPTIVE, "53 years before", "timestamp_millis"),
    "all rows in another zone": (
        changed(lambda rows, at: {"ts": rows["ts"] - (2 * HOUR if at >= 15 else 0)}), ADAPTIVE,
        "went back by 2 h", "to_utc_timestamp",
    ),
    "a clock a year ahead": (
        of_source("m4", lambda ts, at: ts + 365 * DAY * (at > 5)), ADAPTIVE, "beyond all others by 365 d", "max_ahead=",
    ),
    "too small a max_slack": (
        lambda: kept_for(lambda rows: np.arange(len(rows["ts"])) % 7 == 0, 9), sp.AqKSlack(0.01, max_slack="10 seconds"),
        "max_slack='10 seconds' is the longest wait", "max_slack='",
    ),
    "a source that has stopped": (
        lambda: (where(rows, (rows["source"] != "m0") | (at < 25)) for at, rows in enumerate(healthy())), ADAPTIVE,
        "m0 sent rows in nearly every batch", "has stopped",
    ),
    "a source that is waited for": (
        lambda: (where(rows, (rows["source"] != "m0") | (at < 25)) for at, rows in enumerate(healthy())),
        sp.Readiness("1 hour"), "m0, the last of 5 sources, is", "idle_after=",
    ),
    "a source that never comes": (healthy, sp.Readiness(99, sources=("m0", "m9")), "the first row of m9", "sources="),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_line_names_the_cause_and_the_setting(session: Session, tmp_path: Path, name: str):
    stream, progress, why, remedy = CASES[name]
    seen = run(session, tmp_path, tables(stream()), progress=progress)
    found = {cause.line for one in seen for cause in one.causes}
    assert any(why in line and remedy in line for line in found), found
    of_rows = [cause for one in seen for cause in one.causes if cause.reason]
    assert all(cause.examples for cause in of_rows), of_rows


def nulls(name: str, every: int) -> list[pa.Table]:
    """Return batches in which a column has a null in one of so many rows; without a name, in all columns."""
    found = []
    for table in tables(healthy()):
        gaps = pa.array(np.arange(table.num_rows) % every == 0)
        columns = {one: pc.if_else(gaps, None, table[one]) if name in {one, ""} else table[one] for one in SCHEMA.names}
        found.append(pa.table(columns, SCHEMA))
    return found


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        (nulls("price", 10), ["400 rejected rows (null price)", "10 % of the rows", "such as no number", "price=null"]),
        (nulls("", 1), ["4,000 rejected rows (null ts)", "another shape or other names than the schema", "ts=null"]),
        (
            [table.set_column(0, "ts", table["ts"].cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))) for table in tables(healthy())],
            ["4,000 rejected rows (absurd ts)", "sf.timestamp_millis", "ts=the year 55,8"],
        ),
    ],
    ids=["text in a column of numbers", "rows of another shape", "times in another unit"],
)  # fmt: skip
@pytest.mark.long
def test_rejected_rows_are_explained_by_their_reason(
    session: Session, tmp_path: Path, batches: list[pa.Table], words: list[str]
):
    (cause,) = run(session, tmp_path, batches)[-1].causes
    assert all(word in cause.line for word in words), cause.line
    assert len(cause.examples) == 3


@pytest.mark.long
def test_late_rows_after_a_drain_are_those_that_came_after_it(session: Session, tmp_path: Path):
    batches = tables(healthy(disorder=20.0))
    first: list[sp.BatchMetrics] = []
    job = {"window": "1 minute", "progress": ADAPTIVE, "source": "source", "output": tmp_path / "out", "time": "ts"}
    handle = ended(
        sp.stream(session.stream(batches[:12]), "price MIN", checkpoint=tmp_path / "checkpoint", **job),  # type: ignore[arg-type]
        on_batch=first.append,
    )
    assert handle.drain(now=True) is not None
    seen = run(session, tmp_path, batches)
    assert (
        seen[0]
        .causes[0]
        .line.partition(": ")[2]
        .startswith("a drain has closed the windows of rows that came after it")
    )


@pytest.mark.long
def test_a_sink_that_is_slow_is_named(session: Session, tmp_path: Path):
    def sink(rows: Any, _: int) -> None:
        rows.count()
        time.sleep(1.1)  # what is wrong with it

    seen = run(session, tmp_path, tables(healthy(8)), output=sink)
    assert "of it in the sink; a faster sink" in seen[-1].causes[0].line


@pytest.mark.long
def test_local_times_that_are_read_as_utc_are_named(session: Session, tmp_path: Path):
    arriving: list[pa.Table] = []
    seen: list[sp.BatchMetrics] = []
    job = sp.stream(
        session.stream(arriving, SCHEMA), "price MIN", time="ts", window="1 minute", checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "out",
    )  # fmt: skip
    handle = job.start(on_batch=seen.append)
    for at in range(8):
        now = time.time_ns() // 1_000 + 2 * HOUR
        arriving.append(tables([{"ts": [now], "source": ["a"], "price": [1.0]}])[0])
        until = time.monotonic() + 60
        while len(seen) <= at and time.monotonic() < until:
            handle.await_termination(0.02)
    handle.stop()
    (cause,) = seen[-1].causes
    assert "their times are 2 h" in cause.line
    assert "to_utc_timestamp" in cause.line


@pytest.mark.long
@pytest.mark.parametrize("progress", [ADAPTIVE, sp.KSlack(), sp.Watermark("5 minutes"), sp.Readiness(5)], ids=type)
@pytest.mark.parametrize("disorder", [0.1, 10.0, 60.0])
def test_a_healthy_stream_has_no_line(session: Session, tmp_path: Path, progress: Any, disorder: float):
    """Over a restart and a drain at its end; late rows from which a policy learns do not count."""
    if isinstance(progress, sp.Readiness) and disorder > 1:
        pytest.skip("exact only if each source is in order")
    batches = tables(healthy(60, disorder))
    seen = run(session, tmp_path / "all", batches, progress=progress)
    part = run(session, tmp_path, batches[:20], progress=progress) + run(session, tmp_path, batches, progress=progress)
    assert [cause.line for one in (*seen, *part) for cause in one.causes] == []


@pytest.mark.long
def test_the_same_line_is_in_the_log_once_in_all_displays_and_after_a_restart(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "skypane")
    batches = nulls("price", 10)[:6] + tables(healthy())[6:]
    seen = run(session, tmp_path, batches[:3]) + run(session, tmp_path, batches)
    (cause,) = seen[3].causes
    assert (cause.batch, cause.number) == (0, 40)
    of_log = [record.getMessage() for record in caplog.records if record.name.endswith("diagnosing")]
    assert [seen[0].causes[0].line] == of_log[:1]
    assert [line.partition(":")[0] for line in of_log[1:]] == ["no more"]
    assert seen[-1].causes == ()

    last = seen[5].causes[0].line
    view = view_from("offers", seen[:6])
    committed = CommittedBatches(str(tmp_path / "checkpoint")).new()
    assert ("cause", last) in facts(view)
    assert committed[-1] == seen[-1]
    snapshot = Snapshot("offers", "Which?", 0, (), tuple(seen[:6]))
    assert last in lines(snapshot)
    assert last.partition(" since ")[0] in render(snapshot)


def test_secrets_of_addresses_and_other_columns_are_not_shown():
    rows = pa.table({"ts": [None], "url": ["s3://key:hunter2@bucket/a"], "price": [1.0], "card": ["4111"]}).cast(
        pa.schema({"ts": pa.timestamp("us"), "url": pa.string(), "price": pa.float64(), "card": pa.string()})
    )
    plan = Plan(sp.Skyline("price MIN"), Windows(MINUTE, MINUTE), "ts", ADAPTIVE, source="url")
    (report,) = ExampleStage(replace(plan.gate, keep=True), "null ts")(rows.to_batches())
    text = report["report"][0].as_py()
    assert "ts=null" in text
    assert "bucket/a" in text
    assert "hunter2" not in text
    assert "4111" not in text


def test_a_full_disk_is_named_with_what_to_do():
    line = error_line(OSError(28, "No space left on device", "/data/checkpoint"))
    assert line.endswith("free space there, and start again: no row is lost, and the batch is repeated")
