"""Batches that end as no batch should, and stops that are cut short: no query waits forever."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.parameters import slow_but
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import expected, finish, late_rows, parquet_rows, windows_of, write_batches

import skypane as sp
from skypane.runtime.spark import handle as handles
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle
from skypane.runtime.spark.sinks.directory import Directory

LIMIT = 60
BATCHES = 4


class Held(Directory):
    """A folder that waits in the middle of a batch, in Python, until it is released."""

    entered, let_go = threading.Event(), threading.Event()

    def write(self, spark: SparkSession, answers: object, batch_id: int) -> None:
        self.entered.set()
        assert self.let_go.wait(LIMIT)
        spark.range(1).collect()
        super().write(spark, answers, batch_id)  # type: ignore[arg-type]


def held(folder: Path) -> Held:
    Held.entered, Held.let_go = threading.Event(), threading.Event()
    return Held(str(folder))


def stream_in(folder: Path) -> tuple[Task, list[pa.Table]]:
    """Write the batches of a stream; return the task that reads them."""
    batches = late_rows(3, batches=BATCHES)
    write_batches(folder / "in", batches)
    return Task(str(folder), late=False), batches


@pytest.mark.parametrize(
    "kind", slow_but([SystemExit], [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
)
@pytest.mark.parametrize("where", ["sink", "listener"])
def test_an_error_that_is_not_an_exception_fails_the_query_in_one_line(
    where: str, kind: type[BaseException], spark: SparkSession, tmp_path: Path
):
    task, batches = stream_in(tmp_path)
    wrong, taken = {1}, dict[int, pa.Table]()

    def end(batch_id: int) -> None:
        if batch_id in wrong:
            wrong.clear()
            raise kind("no more")

    def take(rows: DataFrame, batch_id: int) -> None:
        if where == "sink":
            end(batch_id)
        taken[batch_id] = rows.toArrow()

    job = job_of(spark, task, output=take)
    listen = (lambda batch: end(batch.batch_id)) if where == "listener" else None
    handle = job.start(trigger="available now", on_batch=listen)
    with pytest.raises(sp.SkypaneError, match=rf"^the query has failed: {kind.__name__}: no more$") as error:
        assert handle.await_termination(LIMIT), "it waits for the answer of a thread that has ended"
    assert isinstance(error.value.__cause__, kind)
    handle.stop()
    finish(job)
    assert windows_of(pa.concat_tables(taken[batch_id] for batch_id in sorted(taken))) == expected(task.plan, batches)


def test_a_stop_that_is_cut_short_still_stops(spark: SparkSession, tmp_path: Path):
    """Else the next batch, which is refused because of the stop, waits forever for Spark to stop."""
    task, batches = stream_in(tmp_path)
    job = job_of(spark, task, output=held(tmp_path / "out"))
    handle = job.start()
    assert Held.entered.wait(LIMIT)

    def interrupt() -> None:
        assert isinstance(handle._lifecycle, BatchLifecycle)
        while not handle._lifecycle._stopping.is_set():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        assert Held.let_go.wait(LIMIT)

    def raising(*_: object) -> None:
        threading.Thread(target=release, args=(handle,)).start()
        raise KeyboardInterrupt

    hand = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, raising)
    try:
        hand.start()
        with pytest.raises(KeyboardInterrupt):
            handle.stop()
    finally:
        signal.signal(signal.SIGINT, before)
        hand.join(LIMIT)
    assert handle.await_termination(LIMIT), "a batch waits for a stop that does not come"
    finish(job_of(spark, task))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, batches)


def release(handle: sp.StreamHandle) -> None:
    """Let the batch go on when Spark stops the query; also when it does not, so that the test fails and does not hang."""
    until = time.monotonic() + 10
    while handle.query.isActive and time.monotonic() < until:
        pass
    Held.let_go.set()


def test_an_interrupt_of_a_start_leaves_no_query_without_a_handle(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    task, batches = stream_in(tmp_path)
    start = DataStreamWriter.start

    def interrupted(writer: DataStreamWriter) -> StreamingQuery:
        query = start(writer)
        signal.raise_signal(signal.SIGINT)  # Spark has begun the query, and nobody knows it yet
        return query

    monkeypatch.setattr(DataStreamWriter, "start", interrupted)
    job = job_of(spark, task)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        job.start()
    assert spark.streams.active == []
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    finish(job)
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, batches)


def test_a_stop_reports_what_it_waits_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(handles, "SAY_EVERY", 0.01)
    said = threading.Event()

    class Listening(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            said.set()

    listening = Listening(logging.WARNING)
    task, _ = stream_in(tmp_path)
    handle = job_of(spark, task, output=held(tmp_path / "out")).start()
    assert Held.entered.wait(LIMIT)
    stopping = threading.Thread(target=handle.stop, kwargs={"timeout": 0})
    handles.log.addHandler(listening)
    try:
        stopping.start()
        assert said.wait(LIMIT)
    finally:
        handles.log.removeHandler(listening)
        Held.let_go.set()
    stopping.join(LIMIT)
    assert handle.await_termination(LIMIT)
    line = next(record.getMessage() for record in caplog.records if record.name == handles.log.name)
    assert line.startswith("the query does not stop yet: batch 0 is in ")
    assert f"Held.write ({__file__}:" in line
