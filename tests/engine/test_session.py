"""skypane.testing.Session: what takes the place of Spark's session and of its queries, and what is refused there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.runtime.streams import expected, late_rows, parquet_rows, windows_of

import skypane as sp
from skypane.kernels import warming
from skypane.plan import Plan
from skypane.runtime.kernels_ahead import prepare_kernels
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.testing import Session, killed
from skypane.types import Length
from skypane.windows import Windows

BATCHES = late_rows(61, batches=6)
WINDOWS = Windows(50_000_000, 20_000_000)
QUERY = sp.Skyline("price MIN, rating MAX", "sensor")
PLAN = Plan(QUERY, WINDOWS, "ts", sp.Watermark("20 seconds"))


def job_of(rows: Any, folder: Path, query: Any = QUERY, **options: Any) -> sp.Job:
    own: dict[str, Any] = {
        "time": "ts",
        "window": Length(WINDOWS.length),
        "slide": Length(WINDOWS.slide),
        "progress": sp.Watermark("20 seconds"),
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
    }
    return sp.stream(rows, query, **own | options)


def run(job: sp.Job) -> list[int]:
    """Run a job to its end; return the rows of its batches."""
    seen: list[int] = []
    assert job.start(trigger="available now", on_batch=lambda batch: seen.append(batch.rows)).await_termination(60)
    return seen


@pytest.mark.parametrize(("at_once", "cuts"), [(1, [1] * 6), (4, [4, 2]), (iter([1, 2, 9]).__next__, [1, 2, 3])])
def test_a_batch_takes_as_many_tables_as_are_wanted_and_there(at_once: Any, cuts: list[int], tmp_path: Path):
    assert run(job_of(Session().stream(BATCHES, at_once=at_once), tmp_path)) == [40 * tables for tables in cuts]


@pytest.mark.parametrize("seed", range(4))
def test_partitions_and_tasks_that_run_twice_change_no_answer(seed: int, tmp_path: Path):
    run(job_of(Session(seed, repeated=0.5).stream(BATCHES), tmp_path))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PLAN, BATCHES)


def test_a_running_query_takes_what_arrives_and_ends_when_it_is_stopped(tmp_path: Path):
    arriving = BATCHES[:2]
    handle = job_of(Session().stream(arriving), tmp_path).start(trigger="0 seconds", name="offers")
    handle.query.processAllAvailable()
    arriving += BATCHES[2:]
    handle.query.processAllAvailable()
    assert (handle.name, handle.active, handle.status["error"]) == ("offers", True, None)
    handle.stop()
    assert not handle.active
    assert [batch.rows for batch in handle.recent_metrics()] == [40] * 6


def test_an_error_of_a_sink_fails_the_query_and_the_next_start_repeats_the_batch(tmp_path: Path):
    taken: list[int] = []

    def sink(rows: Any, number: int) -> None:
        taken.append(number)
        if len(taken) == 2:
            raise OSError("the disk is full")
        assert rows.count() == len(rows.collect()) == len([*rows.toLocalIterator()])

    with pytest.raises(sp.SkypaneError, match="the disk is full"):
        run(job_of(Session().stream(BATCHES), tmp_path, output=sink))
    run(job_of(Session().stream(BATCHES), tmp_path, output=sink))
    assert taken == [0, 1, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("query", "options", "problem"),
    [
        (sp.Skyline("price * 2 MIN", "sensor"), {}, "price"),
        (sp.TopK(2, "rating / greatest(price, 1)"), {}, "needs Spark"),
        (sp.Aggregate("sensor", n=sp.count(), having="upper(sensor) = 'A'"), {}, "needs Spark"),
        (QUERY, {"time": "when"}, "unknown column 'when'"),
    ],
)  # fmt: skip
def test_what_only_spark_computes_is_refused_by_name(query: Any, options: Any, problem: str, tmp_path: Path):
    with pytest.raises(sp.ConfigError, match=problem):
        job_of(Session().stream(BATCHES), tmp_path, query, **options)


@pytest.mark.parametrize(
    "asked",
    [
        lambda rows: rows.where("price > 1"),
        lambda rows: rows.select(1),
        lambda rows: rows.repartition(2),
        lambda rows: rows.withColumns({"x": 1}),
    ],
)
def test_a_frame_names_what_needs_spark(asked: Callable[[Any], Any]):
    with pytest.raises(sp.ConfigError, match="needs Spark, and this session has none"):
        asked(Session().createDataFrame(BATCHES[0]))


@pytest.mark.parametrize("when", ["before", "half", "after"])
def test_a_driver_is_killed_at_the_operation_that_is_named_and_the_next_one_continues(when: Any, tmp_path: Path):
    rows = Session().stream(BATCHES)
    kills = 0
    while killed(lambda: run(job_of(rows, tmp_path)), at=30 + 10 * kills, when=when):
        kills += 1
        known = Ledger(DocumentStore.at(tmp_path / "checkpoint").child("skypane")).latest()
        assert known is None or known.batch_id < len(BATCHES)
    assert kills
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PLAN, BATCHES)


def test_a_driver_that_fails_does_not_count_as_killed(capfd: pytest.CaptureFixture[str]):
    with pytest.raises(AssertionError, match="has ended with 1"):
        killed(lambda: pytest.fail("of its own"), at=1)
    assert "of its own" in capfd.readouterr().err


def test_a_fork_has_no_lock_of_a_thread_that_loads_kernels(monkeypatch: pytest.MonkeyPatch):
    """The start of a query begins such a thread, and LLVM has a lock."""
    lock, is_held, until = threading.Lock(), threading.Event(), time.monotonic() + 0.3

    def load(**_: Any) -> None:
        with lock:
            is_held.set()
            while time.monotonic() < until:
                pass

    monkeypatch.setattr(warming, "missing", lambda _: [])
    monkeypatch.setattr(warming, "warm", load)
    prepare_kernels(["scores"])
    assert is_held.wait(10)

    def run_in_fork() -> None:
        assert lock.acquire(timeout=5)

    assert not killed(run_in_fork, at=1)


def test_a_table_without_a_column_of_the_stream_is_named(tmp_path: Path):
    rows = Session().stream([*BATCHES[:2], BATCHES[2].drop_columns("price")])
    with pytest.raises(sp.SkypaneError, match="batch 2 has no column 'price'"):
        run(job_of(rows, tmp_path))


def test_a_stream_without_tables_needs_a_schema():
    with pytest.raises(sp.ConfigError, match="needs schema="):
        Session().stream([])
    assert Session().stream([], pa.schema({"ts": pa.timestamp("us", "UTC")})).columns == ["ts"]
