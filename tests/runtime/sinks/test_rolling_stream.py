"""Real streams whose answers wait for a file of several batches: what a reader of the folder sees while they run and after."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.test_amended import QUERIES, job_of
from tests.engine.test_readmission import REASON, batches_with_nulls, repair
from tests.runtime.streams import AnySession, finish, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.testing import Session
from skypane.testing.query_kit import multiset

QUERY = QUERIES["aggregate"]
BATCHES = late_rows(7, batches=8)


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def rolling_job(session: AnySession, folder: Path, roll: str | None = "1 hour", out: str = "out") -> sp.Job:
    return sp.stream(
        read_batches(session, folder / "in", BATCHES[0].schema), QUERY, time="ts", window="50 seconds",
        progress=sp.Watermark("1 second"), output=sp.Directory(str(folder / out), roll=roll),
        checkpoint=folder / f"state of {out}",
    )  # fmt: skip


@pytest.fixture
def expected(session: Session, tmp_path: Path) -> Counter[str]:
    """Answers of the batches, which are in `in`, with a file for each batch."""
    write_batches(tmp_path / "in", BATCHES)
    finish(rolling_job(session, tmp_path, None, "plain"))
    return multiset(parquet_rows(tmp_path / "plain"))


def test_the_answers_of_several_batches_are_in_one_file_when_the_stream_has_ended(
    session: Session, tmp_path: Path, expected: Counter[str]
):
    during: list[int] = []
    handle = rolling_job(session, tmp_path).start(
        trigger="available now", on_batch=lambda _: during.append(len(files_of(tmp_path / "out")))
    )
    assert handle.await_termination(600)
    assert max(during) <= 1, "only the first batch with answers may have a file of its own"
    assert len(files_of(tmp_path / "out")) <= 2 < len(files_of(tmp_path / "plain"))
    assert multiset(parquet_rows(tmp_path / "out")) == expected
    assert multiset(session.read.parquet(str(tmp_path / "out")).toArrow()) == expected


def test_a_stop_writes_the_file(session: Session, tmp_path: Path, expected: Counter[str]):
    seen: list[int] = []
    handle = rolling_job(session, tmp_path).start(
        trigger="0 seconds", on_batch=lambda metrics: seen.append(metrics.rows)
    )
    while len(seen) < 8 and handle.active:
        handle.await_termination(0.05)
    handle.stop()
    assert multiset(parquet_rows(tmp_path / "out")) == expected


def test_who_waits_for_a_query_hears_of_a_file_that_a_stop_from_a_listener_cannot_write(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_batches(tmp_path / "in", BATCHES)
    handles: list[sp.StreamHandle] = []
    is_there = Event()

    def stop(metrics: sp.BatchMetrics) -> None:
        assert is_there.wait(60)
        if metrics.batch_id == 3:
            handles[0].stop()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "empty_outbox", full)
        handles.append(rolling_job(session, tmp_path).start(trigger="0 seconds", on_batch=stop))
        is_there.set()
        with pytest.raises(OSError, match="no space left on device"):
            handles[0].await_termination(600)
    handles[0].stop()
    latest = Ledger(DocumentStore.at(str(tmp_path / "state of out" / "skypane"))).latest()
    assert latest is not None
    assert latest.batch_id >= 3
    assert latest.outbox == {}
    assert len(files_of(tmp_path / "out")) == 2


def test_the_file_is_written_in_time_while_the_stream_runs_and_no_rows_come(
    session: Session, tmp_path: Path, expected: Counter[str]
):
    handle = rolling_job(session, tmp_path, "2 seconds").start(trigger="0 seconds")
    try:
        for _ in range(600):
            if handle.await_termination(0.1):
                break
            if files_of(tmp_path / "out") and multiset(parquet_rows(tmp_path / "out")) == expected:
                return
        raise AssertionError("the answers are not in the folder")
    finally:
        handle.stop()


def test_a_drain_and_the_next_start_write_the_file(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:4])
    handle = rolling_job(session, tmp_path).start(trigger="available now")
    assert handle.await_termination(600)
    handle.drain()
    drained = parquet_rows(tmp_path / "out")
    write_batches(tmp_path / "in", BATCHES[4:], first=4)
    finish(rolling_job(session, tmp_path))
    rows = parquet_rows(tmp_path / "out")
    assert rows.num_rows > drained.num_rows
    keys = [(row["window_start"], row["sensor"]) for row in rows.to_pylist()]
    assert len(keys) == len(set(keys)), "each window is answered once"


def test_versions_of_windows_that_share_a_file_are_current_for_their_reader(spark: SparkSession, tmp_path: Path):
    batches = late_rows(41, batches=6, rows=80)
    write_batches(tmp_path / "in", batches)
    for name, roll in (("plain", None), ("rolled", "1 hour")):
        out = sp.Directory(str(tmp_path / name), roll=roll)
        job = job_of(spark, tmp_path, QUERY, batches[0].schema, output=out, checkpoint=tmp_path / f"{name}-state",
                     late=sp.Amend("12 seconds"))  # fmt: skip
        handle = job.start(trigger="available now")
        handle.await_termination(600)
        handle.drain()
    assert len(files_of(tmp_path / "rolled")) < len(files_of(tmp_path / "plain"))
    plain, rolled = (multiset(sp.read_answers(spark, str(tmp_path / name)).toArrow()) for name in ("plain", "rolled"))
    assert rolled == plain


def test_rejected_rows_that_wait_are_readmitted(session: Session, tmp_path: Path):
    batches = batches_with_nulls()
    write_batches(tmp_path / "in", batches)
    late = sp.Directory(str(tmp_path / "late"), roll="1 hour")
    job = job_of(session, tmp_path, QUERIES["skyline"], batches[0].schema, late=sp.Amend("12 seconds", then=late))
    handle = job.start(trigger="available now")
    assert handle.await_termination(600)
    rejected = sum(row["reason"] == REASON for row in parquet_rows(tmp_path / "late").to_pylist())
    metrics = handle.readmit(REASON, repair)
    assert metrics is not None
    assert metrics.rows == rejected > 0
    with pytest.raises(sp.ConfigError, match="no rows to readmit"):
        handle.readmit(REASON, repair)


def test_each_of_several_queries_rolls(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    queries = {"best": QUERIES["skyline"], "load": QUERY}
    for name, roll in (("plain", None), ("rolled", "1 hour")):
        handle = sp.streams(
            read_batches(session, tmp_path / "in", BATCHES[0].schema), queries, time="ts", window="50 seconds",
            output=sp.Directory(str(tmp_path / name), roll=roll), checkpoint=tmp_path / f"{name}-state",
        ).start(trigger="available now")  # fmt: skip
        assert handle.await_termination(600)
        handle.drain()
    for query in queries:
        assert multiset(parquet_rows(tmp_path / "rolled" / query)) == multiset(parquet_rows(tmp_path / "plain" / query))
        assert len(files_of(tmp_path / "rolled" / query)) <= 3


def test_a_query_that_fails_has_its_committed_answers_in_files(
    session: Session, tmp_path: Path, expected: Counter[str]
):
    run, answered = WindowedProgram.run, [0]

    def failing(program: Any, batch: Any, state: Any) -> Any:
        if batch.batch_id == 5:
            raise OSError("the end comes here")
        outcome = run(program, batch, state)
        assert outcome.answers is not None
        answered.append(outcome.answers.row_count)
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WindowedProgram, "run", failing)
        handle = rolling_job(session, tmp_path).start(trigger="available now")
        with pytest.raises(sp.SkypaneError, match="the end comes here"):
            handle.await_termination(600)
    assert parquet_rows(tmp_path / "out").num_rows == sum(answered) > 0
    finish(rolling_job(session, tmp_path))
    assert multiset(parquet_rows(tmp_path / "out")) == expected
