"""Spark's streams against runtime/local.py, which defines what they must answer."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.parameters import slow_but
from tests.runtime.receiving.logs import until
from tests.runtime.streams import (
    SECOND,
    AnySession,
    CountBySensor,
    NaiveWatermark,
    Window,
    answers,
    csv_rows,
    ended,
    expected,
    finish,
    ids_by_reason,
    late_rows,
    parquet_rows,
    read_batches,
    start_knowing,
    stream_job,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.exchange import AS_READ, Exchange, ExchangeState
from skypane.control.placement import place_windows
from skypane.control.predictions import ExpectedBatch
from skypane.control.splitting import POLICIES
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.preference import Score
from skypane.progress import ProgressPolicy
from skypane.runtime import local
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle
from skypane.runtime.spark.engine import window_program
from skypane.testing import Session
from skypane.windows import Windows
from skypane.wording import counted

PARETO = sp.low("price") * sp.high("rating")
SKYLINE = Skyline(PARETO, ("sensor",))


@dataclass(frozen=True)
class Case:
    """One job over one stream; times in seconds."""

    query: Query
    length: int
    slide: int
    offset: int = 0
    progress: ProgressPolicy = field(default_factory=lambda: sp.Watermark("20 seconds"))
    start: int = 1_700_000_000
    zone: str | None = "UTC"
    files: int = 1

    @property
    def plan(self) -> Plan:
        windows = Windows(self.length * SECOND, self.slide * SECOND, self.offset * SECOND)
        return Plan(self.query, windows, "ts", self.progress)

    def batches(self, seed: int = 7) -> list[pa.Table]:
        return late_rows(seed, start=self.start * SECOND, zone=self.zone)


CASES = {
    "skyline by group, panes shorter than the slide": Case(SKYLINE, 50, 20, files=2),
    "skyline without groups, merges shared between windows": Case(Skyline(PARETO), 60, 5, start=-40),
    "prioritised, times without zone": Case(Skyline(sp.low("price") & sp.high("rating")), 40, 40, 7, zone=None),
    "one skyline per value of diff": Case(Skyline(PARETO * sp.diff("weight")), 45, 30, -4, start=-1_000_000_000),
    "top-k, before 1970, without zone": Case(
        TopK(3, Score.of("rating - price"), ("sensor",)), 30, 10, 3, sp.Watermark("15 seconds"), -86_400, None
    ),
    "k-dominant, a budget of drops": Case(
        KDominant(2, PARETO * sp.around("weight", 0)), 40, 5, progress=sp.AqKSlack(0.05, "20 seconds")
    ),
    "top-delta": Case(TopDelta(2, PARETO * sp.low("weight"), ("sensor",)), 35, 15, progress=sp.Watermark("0 us")),
    "user-defined": Case(CountBySensor(), 120, 10, 5, sp.Watermark("5 seconds"), files=2),
}

ALWAYS = ("top-k, before 1970, without zone", "k-dominant, a budget of drops")


def job_of(session: AnySession, case: Case, folder: Path, batches: Sequence[pa.Table], **options: Any) -> sp.Job:
    """Return the job of a case over `batches`, which are written for it."""
    write_batches(folder / "in", batches, files=case.files)
    own: dict[str, Any] = {"files": case.files, "window": case.plan.windows, "progress": case.progress}
    return stream_job(session, folder, case.query, batches[0].schema, **own | options)


OVERLAPPING = Case(SKYLINE, 50, 20)


def numbers(batches: Sequence[sp.BatchMetrics]) -> list[int]:
    return [batch.batch_id for batch in batches]


def assert_answers(answered: Sequence[Window], plan: Plan, batches: Sequence[local.Event]) -> None:
    """Hold windows against the oracle: each is there once, in order."""
    assert answered == expected(plan, batches)
    starts = [start for start, _ in answered]
    assert starts == sorted(set(starts))


def assert_answered(output: Path, case: Case, batches: Sequence[local.Event]) -> None:
    assert_answers(windows_of(parquet_rows(output)), case.plan, batches)


@pytest.mark.core
@pytest.mark.parametrize("name", slow_but(ALWAYS, CASES))
def test_a_stream_answers_as_the_oracle(name: str, spark: SparkSession, tmp_path: Path):
    case = CASES[name]
    batches, memory = case.batches(), sp.Memory()
    metrics = finish(job_of(spark, case, tmp_path, batches, output=memory))
    answered = windows_of(memory.table())
    assert len(answered) > 2
    assert_answers(answered, case.plan, batches)
    assert [batch.rows for batch in metrics] == [batch.num_rows for batch in batches]
    # A window of many rows may have no k-dominant one: it is answered, and leaves no row.
    assert sum(batch.windows for batch in metrics) == len(list(local.answers(case.plan, batches)))
    assert sum(batch.window_rows for batch in metrics) == memory.table().num_rows


def test_queries_of_every_kind_answer_over_one_stream_as_the_oracle(session: Session, tmp_path: Path):
    """Those of CASES, each with its windows, under one policy."""
    cases = {f"query{number}": case for number, case in enumerate(CASES.values())}
    batches, outputs = Case(SKYLINE, 1, 1).batches(), {name: sp.Memory() for name in cases}
    write_batches(tmp_path / "in", batches, files=2)
    job = sp.streams(
        read_batches(session, tmp_path / "in", batches[0].schema, files=2),
        {name: case.query for name, case in cases.items()},
        time="ts",
        window={name: case.plan.windows for name, case in cases.items()},
        progress=sp.Watermark("20 seconds"),
        checkpoint=tmp_path / "checkpoint",
        output=outputs,
    )
    metrics = finish(job)
    for name, case in cases.items():
        plan = replace(case.plan, progress=sp.Watermark("20 seconds"))
        assert_answers(windows_of(outputs[name].table()), plan, batches)
        answered = sum(batch.queries[name].windows for batch in metrics)
        assert answered == len(list(local.answers(plan, batches))), case


@pytest.fixture
def exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are exchanged before they are lifted, from the first batch on."""
    monkeypatch.setattr(Exchange, "init", lambda _: ExchangeState(needed=True, because="the test needs it"))


@pytest.fixture
def answered_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job costs nothing: wherever there are two windows, workers answer them."""
    monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))


@pytest.mark.core
@pytest.mark.usefixtures("exchanged", "answered_by_workers")
@pytest.mark.parametrize("splitting", slow_but(["AS_PID"], ["PB_RR", "TB_RR", "AS_PID"]))
def test_answers_do_not_depend_on_workers(splitting: str, spark: SparkSession, tmp_path: Path):
    batches = late_rows(11, start=-100 * SECOND, rows=80)
    job = job_of(spark, OVERLAPPING, tmp_path, batches, workers=sp.WorkerOptions(plq_workers=1, splitting=splitting))
    seen: list[sp.BatchMetrics] = []

    def rescale(handle: sp.StreamHandle, batch: sp.BatchMetrics) -> None:
        seen.append(batch)
        handle.scale(plq=1 + (batch.batch_id + 1) % 3, wlq=2 + batch.batch_id % 2)

    assert start_knowing(job, rescale, trigger="available now").await_termination(120)
    assert [batch.plq_workers for batch in seen] == [1, 2, 3, 1, 2, 3]
    assert {batch.exchange for batch in seen} == {True}
    assert {batch.splitting for batch in seen} == {splitting}
    assert all(decision and decision.because for decision in (batch.decision("splitting") for batch in seen))
    assert all(batch.sigma is not None and 1 <= batch.sigma <= batch.plq_workers for batch in seen)
    assert [batch.rho is not None and batch.rho > 0 for batch in seen] == [False, *[True] * 5]
    assert {(batch.wlq_where, batch.wlq_workers > 1) for batch in seen if batch.windows > 1} == {("spark", True)}
    assert_answered(tmp_path / "out", OVERLAPPING, batches)


@pytest.mark.usefixtures("answered_by_workers")
def test_the_splitting_may_change_in_every_batch_and_over_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Partials of whole panes, of split ones, and of the source's partitions merge alike in one window."""
    case, order = OVERLAPPING, [AS_READ, *POLICIES]
    ways = cycle(order)

    def in_turn(_: Exchange, state: ExchangeState, __: ExpectedBatch) -> tuple[ExchangeState, Decision[str | None]]:
        way = next(ways)
        return state, Decision("exchange", None if way == AS_READ else way, "it is its turn")

    monkeypatch.setattr(Exchange, "worth_routing", lambda *_: True)
    monkeypatch.setattr(Exchange, "decide", in_turn)
    batches = late_rows(12, start=-100 * SECOND, rows=80, batches=8)
    workers = sp.WorkerOptions(plq_workers=3, wlq_workers=2)
    job = job_of(spark, case, tmp_path, batches[:4], workers=workers)
    seen = finish(job)
    write_batches(tmp_path / "in", batches[4:], files=case.files, first=4)
    seen += finish(job)
    assert [batch.splitting for batch in seen] == [order[at % len(order)] for at in range(8)]
    assert_answered(tmp_path / "out", case, batches)


def json_rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("part-*.json")) for line in path.read_text().splitlines()]


@pytest.mark.core
@pytest.mark.usefixtures("answered_by_workers")
def test_workers_hand_answers_to_any_output(session: Session, tmp_path: Path):
    case, taken = Case(SKYLINE, 50, 10), []

    def take(frame: DataFrame, batch_id: int) -> None:
        taken.append((batch_id, frame.toArrow()))

    batches = case.batches()
    metrics = finish(job_of(session, case, tmp_path, batches, output=take))
    assert "spark" in {batch.wlq_where for batch in metrics}
    assert [batch_id for batch_id, _ in taken] == list(range(len(batches)))
    # A DataFrame of many files promises no order of its rows: the order is between batches.
    answered = [window for _, table in taken for window in windows_of(table.sort_by("window_start"))]
    assert answered == expected(case.plan, batches)
    assert not list((tmp_path / "checkpoint" / "skypane" / "answers").iterdir())


def test_output_as_csv_and_as_json_which_keeps_numbers_and_nulls(session: Session, tmp_path: Path):
    case = Case(Skyline(PARETO, ("sensor",)), 60, 20)
    batches = [with_hard_values(batch) for batch in case.batches()]
    write_batches(tmp_path / "in", batches)
    finish(
        sp.streams(
            read_batches(session, tmp_path / "in", batches[0].schema),
            {"csv": case.query, "json": case.query},
            time="ts",
            window=case.plan.windows,
            progress=case.progress,
            checkpoint=tmp_path / "checkpoint",
            output={
                "csv": sp.Directory(str(tmp_path / "csv"), "csv"),
                "json": sp.Directory(str(tmp_path / "json"), "json"),
            },
        )
    )
    rows = answers(case.plan, batches)
    assert windows_of(csv_rows(tmp_path / "csv", rows.schema)) == windows_of(rows)
    written, wanted = json_rows(tmp_path / "json"), rows.to_pylist()
    assert any(row["large"] is None for row in wanted)
    assert any(math.isinf(row["rating"]) for row in wanted)
    columns = ("id", "large", "sensor", "price", "rating")
    assert Counter(tuple(row[name] for name in columns) for row in wanted) == Counter(
        (*(row[name] for name in columns[:-1]), float(row["rating"])) for row in written
    )
    assert [datetime.fromisoformat(row["window_start"]) for row in written] == [row["window_start"] for row in wanted]


def with_hard_values(batch: pa.Table) -> pa.Table:
    """Return `batch` with whole numbers that no float can hold, a null among them, and an infinity."""
    large = [None if row % 5 == 0 else (1 << 62) + row for row in batch["id"].to_pylist()]
    rating = [math.inf, *batch["rating"].to_pylist()[1:]]
    column = batch.schema.get_field_index("rating")
    return batch.set_column(column, "rating", pa.array(rating)).append_column("large", pa.array(large, pa.int64()))


def test_output_on_the_console(session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    case = Case(SKYLINE, 60, 60)
    batches = case.batches()
    metrics = finish(job_of(session, case, tmp_path, batches, output=sp.Console()))
    printed = capsys.readouterr().out
    for batch in metrics:
        line = f"batch {batch.batch_id}: {counted(batch.windows, 'windows')}, {counted(batch.window_rows, 'rows')}"
        assert (line in printed) == (batch.windows > 0)
    assert "window_start" in printed


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], list[Any], Any]:
    """One stream with rows that are late and rows that cannot be ranked; its folder, batches, metrics and handle."""
    folder = tmp_path_factory.mktemp("mixed")
    case = Case(SKYLINE, 30, 10, progress=sp.Watermark("5 seconds"))
    batches = [with_unrankable(batch) for batch in case.batches(3)]
    job = job_of(spark, case, folder, batches, late=str(folder / "late"), source="sensor")
    seen: list[sp.BatchMetrics] = []
    handle = ended(job, on_batch=seen.append, name="mixed")
    return folder, batches, seen, handle


def with_unrankable(batch: pa.Table) -> pa.Table:
    """Return `batch` with a null, a NaN and a null time in its first rows."""
    price, ts = batch["price"].to_pylist(), batch["ts"].to_pylist()
    price[0], price[1], ts[2] = None, math.nan, None
    times = pa.array(ts, batch.schema.field("ts").type)
    return batch.set_column(3, "price", pa.array(price)).set_column(1, "ts", times)


def usable_rows(batch: pa.Table) -> pa.Table:
    return batch.slice(3)


@pytest.mark.core
def test_late_and_unusable_rows_reach_their_sink_with_a_reason(mixed: tuple[Any, ...]):
    folder, batches, metrics, _ = mixed
    naive = NaiveWatermark(10 * SECOND, 5 * SECOND)
    for batch in batches:
        naive.take(usable_rows(batch))
    assert naive.late
    rejected = parquet_rows(folder / "late")
    assert rejected.column_names == [*batches[0].column_names, "reason"]
    first = [batch["id"][0].as_py() for batch in batches]
    assert ids_by_reason(rejected) == {
        "late": sorted(naive.late),
        "null price": first,
        "NaN price": [row + 1 for row in first],
        "null ts": [row + 2 for row in first],
    }
    assert sum(batch.late_rows for batch in metrics) == metrics[-1].dropped_rows == len(naive.late)
    late_sensors = Counter(
        str(sensor)
        for batch in batches
        for row, sensor in zip(batch["id"].to_pylist(), batch["sensor"].to_pylist(), strict=True)
        if row in naive.late
    )
    assert sum((Counter(batch.late_by_source) for batch in metrics), Counter()) == late_sensors


def test_every_row_is_counted_once(mixed: tuple[Any, ...]):
    _, batches, metrics, _ = mixed
    assert [batch.rows for batch in metrics] == [batch.num_rows for batch in batches]
    for batch in metrics:
        assert batch.quarantined == {"null price": 1, "NaN price": 1, "null ts": 1}
    seen = 0
    for batch in metrics:
        seen += batch.rows - sum(batch.quarantined.values())
        assert batch.seen_rows == seen
    assert metrics[-1].drop_ratio == metrics[-1].dropped_rows / seen


def test_rejected_rows_leave_the_answers_as_they_are(mixed: tuple[Any, ...]):
    folder, batches, _, _ = mixed
    plan = Case(SKYLINE, 30, 10, progress=sp.Watermark("5 seconds")).plan
    answered = windows_of(parquet_rows(folder / "out"))
    assert answered == expected(plan, batches) == expected(plan, [usable_rows(batch) for batch in batches])


def test_metrics_describe_each_batch(mixed: tuple[Any, ...]):
    _, batches, metrics, _ = mixed
    naive = NaiveWatermark(10 * SECOND, 5 * SECOND)
    for batch, rows in zip(metrics, batches, strict=True):
        naive.take(usable_rows(rows))
        assert (batch.newest, batch.slack, batch.punctuation) == (naive.newest, naive.delay, naive.punctuation)
        assert batch.open_panes <= 1 + (naive.delay + 30 * SECOND) // (10 * SECOND) + 20
        assert set(batch.seconds) == {"total", "plq", "progress", "wlq", "sink", "commit"}
        assert 0 <= sum(batch.seconds.values()) - batch.seconds["total"] <= batch.seconds["total"]
        assert len(batch.busy) == batch.plq_workers == 1
        assert batch.task_rows == (rows.num_rows,)
        assert not batch.exchange
        assert (batch.latest_window is None) == (batch.windows == 0)
        assert batch.drop_budget is None
    assert [batch.started_at for batch in metrics] == sorted(batch.started_at for batch in metrics)
    assert sum(batch.windows for batch in metrics) > 0


def test_the_handle_reports_what_happened(mixed: tuple[Any, ...]):
    _, batches, metrics, handle = mixed
    assert handle.status == {"active": False, "message": "Stopped", "error": None}
    assert handle.query.name == "mixed"
    recent = handle.recent_metrics(2)
    assert [batch.batch_id for batch in recent] == [len(batches) - 2, len(batches) - 1]
    assert recent == metrics[-2:], "whoever asks later hears what on_batch heard, seconds too"
    assert handle.recent_metrics(0) == []
    assert len(handle.recent_metrics(1_000)) == len(batches)


def test_an_old_state_is_as_large_as_what_is_open(mixed: tuple[Any, ...]):
    folder, batches, metrics, _ = mixed
    memory = folder / "checkpoint" / "skypane"
    assert len(list((memory / "ledger").iterdir())) == len(batches)
    assert 0 < len(list((memory / "partials").iterdir())) <= metrics[-1].open_panes
    assert not list((memory / "rejected").iterdir())


@pytest.mark.parametrize(
    ("start", "zone"), slow_but([(-1_000_003, None)], product([-1_000_003, 1_700_000_000], ["UTC", None]))
)
def test_windows_are_sparks(start: int, zone: str | None, spark: SparkSession, tmp_path: Path):
    """Counts per window and sensor equal those of Spark's own window(), over all windows that are complete."""
    case, memory = Case(CountBySensor(), 50, 20, 7, sp.Watermark("2 minutes"), start, zone), sp.Memory()
    batches = [*case.batches(), *late_rows(8, batches=1, start=(start + 1_000) * SECOND, zone=zone)]
    finish(job_of(spark, case, tmp_path, batches, output=memory))
    window = sf.window("ts", "50 seconds", "20 seconds", "7 seconds")
    counted = (
        spark.read.parquet(str(tmp_path / "in"))
        .groupBy(window.alias("window"), "sensor")
        .agg(sf.count("*").alias("n"))
        .select("window.start", "window.end", "sensor", "n")
        .toArrow()
    )
    complete = (start + 1_000 - 180) * SECOND
    found, wanted = (zip(*(one.to_pylist() for one in rows.columns), strict=True) for rows in (memory.table(), counted))
    assert Counter(found) == Counter(row for row in wanted if micros(row[1]) <= complete)


def micros(time: datetime) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=time.tzinfo and UTC)
    return (time - epoch) // timedelta(microseconds=1)


@pytest.mark.core
def test_a_stopped_stream_continues_where_it_ended(session: Session, tmp_path: Path):
    batches = OVERLAPPING.batches()
    job = job_of(session, OVERLAPPING, tmp_path, batches[:3])
    committed = threading.Event()
    handle = job.start(on_batch=lambda batch: committed.set() if batch.batch_id == 2 else None)
    assert committed.wait(120)
    assert handle.status["active"]
    assert handle.await_termination(0.01) is False
    handle.stop()
    assert not handle.status["active"]
    write_batches(tmp_path / "in", batches[3:], first=3)
    assert numbers(finish(job)) == [3, 4, 5]
    assert_answered(tmp_path / "out", OVERLAPPING, batches)


def test_a_drained_stream_answers_its_last_windows_and_may_continue(session: Session, tmp_path: Path):
    case, reported = OVERLAPPING, list[sp.BatchMetrics]()
    batches = case.batches()
    job = job_of(session, case, tmp_path, batches[:3], late=str(tmp_path / "late"))
    handle = ended(job, on_batch=reported.append)
    drained = handle.drain()
    assert drained is not None
    assert drained.rows == drained.open_panes == 0 < drained.windows
    assert reported[-1].batch_id == drained.batch_id == 3
    assert handle.drain() is None, "nothing is open"
    assert_answered(tmp_path / "out", case, [*batches[:3], local.Drain()])

    write_batches(tmp_path / "in", batches[3:], first=3)
    ended(job, on_batch=reported.append).drain()
    assert numbers(reported) == list(range(8))
    events = [*batches[:3], local.Drain(), *batches[3:], local.Drain()]
    assert_answered(tmp_path / "out", case, events)
    late = [row for outcome in local.run(case.plan, events) for rows in outcome.rejection.rows for row in rows["id"]]
    assert sorted(parquet_rows(tmp_path / "late")["id"].to_pylist()) == sorted(row.as_py() for row in late)
    assert reported[-1].dropped_rows == len(late) > sum(batch.late_rows for batch in reported[:4])


class Held:
    """The sink of a job over OVERLAPPING that waits in the middle of a batch until it is released; `seen`: what is committed."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.taken: dict[int, pa.Table] = {}
        self.seen: list[int] = []
        self.entered, self.let_go = threading.Event(), threading.Event()
        self.job = job_of(spark, OVERLAPPING, folder, OVERLAPPING.batches(), output=self)

    def start(self, **options: Any) -> sp.StreamHandle:
        return self.job.start(on_batch=lambda batch: self.seen.append(batch.batch_id), **options)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.entered.set()
        assert self.let_go.wait(60)
        notice_interrupt(rows.sparkSession)
        self.taken[batch_id] = rows.toArrow()

    def assert_finishes(self, after: int) -> None:
        """Run the batches that are left, from the one of this number on; all are answered then."""
        assert numbers(finish(self.job)) == list(range(after, 6))
        answered = windows_of(pa.concat_tables(self.taken[batch_id] for batch_id in sorted(self.taken)))
        assert answered == expected(OVERLAPPING.plan, OVERLAPPING.batches())


def notice_interrupt(spark: SparkSession) -> None:
    """Raise if the thread of Java that serves this thread is interrupted: Java checks this in each wait.

    A job of Spark is not enough: if it ends before the thread waits for it, the thread continues, and stays interrupted.
    """
    java = spark.sparkContext._jvm
    assert java is not None
    java.java.lang.Thread.sleep(0)


def assert_stopped(handle: sp.StreamHandle) -> None:
    """No failure, to skypane or to Spark."""
    assert handle.await_termination(60)
    assert handle.status == {"active": False, "message": "Stopped", "error": None}
    assert handle.query.exception() is None


def is_interrupted(spark: SparkSession, query: str) -> bool:
    """Whether Java's thread of this query is interrupted, in what it waits for or in its next wait."""
    java = spark.sparkContext._jvm
    assert java is not None
    threads = java.java.lang.Thread.getAllStackTraces().keySet().toArray()
    return any(thread.isInterrupted() for thread in threads if f"[id = {query}" in thread.getName())


def test_a_stop_waits_for_the_batch_under_way(spark: SparkSession, tmp_path: Path):
    sink = Held(spark, tmp_path)
    handle = sink.start()
    assert sink.entered.wait(60)
    stopping = threading.Thread(target=handle.stop)
    stopping.start()
    assert isinstance(handle._lifecycle, BatchLifecycle)
    assert handle._lifecycle._stopping.wait(60)
    sink.let_go.set()
    stopping.join(60)
    assert_stopped(handle)
    assert sink.seen == [0]
    sink.assert_finishes(1)


def test_a_second_interrupt_does_not_wait_for_the_batch_under_way(spark: SparkSession, tmp_path: Path):
    sink = Held(spark, tmp_path)
    handle = sink.start()

    def interrupt() -> None:
        assert sink.entered.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        while not handle.interrupted:
            sink.let_go.wait(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    hand = threading.Thread(target=interrupt)
    hand.start()
    with pytest.raises(KeyboardInterrupt) as error:
        handle.await_termination(60)
    hand.join(60)
    assert not sink.let_go.is_set(), "the batch is still under way"
    # The answer of a call that was cut must not be taken for the next one's, even while the error keeps all that it went through.
    assert (handle.query.isActive, spark.range(3).count(), str(error.value)) == (True, 3, "")
    sink.let_go.set()
    assert_stopped(handle)
    assert sink.seen == [0], "the first one has stopped it after the batch"


@pytest.mark.parametrize("trigger", slow_but([None], [None, "available now"]))
def test_a_listener_may_stop_its_query(trigger: str | None, spark: SparkSession, tmp_path: Path):
    batches, memory, seen = OVERLAPPING.batches(), sp.Memory(), list[int]()
    job = job_of(spark, OVERLAPPING, tmp_path, batches, output=memory)

    def stop_at_two(handle: sp.StreamHandle, batch: sp.BatchMetrics) -> None:
        seen.append(batch.batch_id)
        if batch.batch_id == 2:
            handle.stop()

    assert_stopped(start_knowing(job, stop_at_two, trigger=trigger))
    assert seen == [0, 1, 2]
    assert numbers(finish(job)) == [3, 4, 5]
    assert windows_of(memory.table()) == expected(OVERLAPPING.plan, batches)


def test_a_drain_waits_for_a_query_that_ends_by_itself(session: Session, tmp_path: Path):
    case, memory, seen = OVERLAPPING, sp.Memory(), list[int]()
    job = job_of(session, case, tmp_path, case.batches(), output=memory)
    job.start(trigger="available now", on_batch=lambda batch: seen.append(batch.batch_id)).drain()
    assert seen == [*range(6), 6], "all rows that were there, and then the drain"
    assert windows_of(memory.table()) == expected(case.plan, [*case.batches(), local.Drain()])


def test_an_interrupt_while_a_drain_waits_leaves_the_windows_open(spark: SparkSession, tmp_path: Path):
    sink = Held(spark, tmp_path)
    handle = sink.start(trigger="available now")

    def interrupt() -> None:
        assert sink.entered.wait(60)
        until(lambda: signal.getsignal(signal.SIGINT) == handle._interrupt, "drain() does not wait")
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: handle.interrupted, "the interrupt does not come")
        sink.let_go.set()

    hand = threading.Thread(target=interrupt)
    hand.start()
    with pytest.raises(KeyboardInterrupt):
        handle.drain()
    hand.join()
    assert_stopped(handle)
    assert sink.seen == list(range(len(sink.seen))), "nothing is drained"
    sink.assert_finishes(len(sink.seen))


def test_an_interrupt_in_a_drain_comes_when_it_is_committed(session: Session, tmp_path: Path):
    """The main thread runs the drain, and kernels in it, which an exception would end with the process."""
    case, taken, seen = OVERLAPPING, list[pa.Table](), list[int]()

    def sink(rows: DataFrame, batch_id: int) -> None:
        if batch_id == 6:
            signal.raise_signal(signal.SIGINT)
        taken.append(rows.toArrow())

    job = job_of(session, case, tmp_path, case.batches(), output=sink)
    handle = job.start(trigger="available now", on_batch=lambda batch: seen.append(batch.batch_id))
    with pytest.raises(KeyboardInterrupt):
        handle.drain()
    assert seen == list(range(7))
    assert windows_of(pa.concat_tables(taken)) == expected(case.plan, [*case.batches(), local.Drain()])
    assert job.start(trigger="available now").drain() is None


@pytest.mark.parametrize("way", ["of skypane", "of Spark"])
def test_a_stop_without_patience_gives_the_batch_up(way: str, spark: SparkSession, tmp_path: Path):
    sink = Held(spark, tmp_path)
    handle = sink.start()
    assert sink.entered.wait(60)
    stopping = threading.Thread(target=handle.query.stop if way == "of Spark" else lambda: handle.stop(timeout=0))
    stopping.start()
    # Spark calls a query stopped before it interrupts the thread that runs its batch.
    while not is_interrupted(spark, handle.query.id):
        assert stopping.is_alive()
        stopping.join(0.02)
    sink.let_go.set()  # its next wait in Java fails
    stopping.join(60)
    assert_stopped(handle)
    assert (sink.seen, sink.taken) == ([], {})
    sink.assert_finishes(0)
