"""Real streams whose answers wait for a file of several batches: what a reader of the folder sees while they run and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import SECOND, answers, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.testing.query_kit import multiset
from skypane.windows import Windows

QUERIES = {
    "best": sp.Skyline("price MIN, rating MAX", "sensor"),
    "load": sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight"), best=sp.max("rating")),
}
PLAN = Plan(QUERIES["load"], Windows(50 * SECOND, 50 * SECOND), "ts", sp.Watermark("1 second"))
BATCHES = late_rows(7, batches=11)


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def defined(batches: Sequence[pa.Table]) -> Counter[str]:
    """Return the answers that the stream has by its definition."""
    return multiset(answers(PLAN, batches))


def rolling_job(spark: SparkSession, folder: Path, roll: str = "1 hour") -> sp.Job:
    return sp.stream(
        read_batches(spark, folder / "in", BATCHES[0].schema), PLAN.query, time="ts", window="50 seconds",
        progress=sp.Watermark("1 second"), output=sp.Directory(str(folder / "out"), roll=roll), checkpoint=folder / "state",
    )  # fmt: skip


def test_the_answers_of_several_batches_are_in_one_file_when_the_stream_has_ended(spark: SparkSession, tmp_path: Path):
    """Also after a drain, and when it goes on; each window is answered once."""
    write_batches(tmp_path / "in", BATCHES[:8])
    during: list[tuple[int, int]] = []
    handle = rolling_job(spark, tmp_path).start(
        trigger="available now", on_batch=lambda batch: during.append((batch.windows, len(files_of(tmp_path / "out"))))
    )
    assert handle.await_termination(600)
    assert max(files for _, files in during) <= 1, "only the first batch with answers may have a file of its own"
    assert len(files_of(tmp_path / "out")) <= 2 < sum(windows > 0 for windows, _ in during)
    assert multiset(parquet_rows(tmp_path / "out")) == defined(BATCHES[:8])
    assert multiset(spark.read.parquet(str(tmp_path / "out")).toArrow()) == defined(BATCHES[:8])
    handle.drain()
    drained = parquet_rows(tmp_path / "out")
    write_batches(tmp_path / "in", BATCHES[8:], first=8)
    handle = rolling_job(spark, tmp_path).start(trigger="available now")
    assert handle.await_termination(600)
    rows = parquet_rows(tmp_path / "out")
    assert rows.num_rows > drained.num_rows
    keys = [(row["window_start"], row["sensor"]) for row in rows.to_pylist()]
    assert len(keys) == len(set(keys)), "each window is answered once"


def test_a_stop_writes_the_file(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:8])
    seen: list[int] = []
    handle = rolling_job(spark, tmp_path).start(trigger="0 seconds", on_batch=lambda metrics: seen.append(metrics.rows))
    while len(seen) < 8 and handle.active:
        handle.await_termination(0.05)
    handle.stop()
    assert multiset(parquet_rows(tmp_path / "out")) == defined(BATCHES[:8])


def test_who_waits_for_a_query_hears_of_a_file_that_a_stop_from_a_listener_cannot_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_batches(tmp_path / "in", BATCHES[:8])
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
        handles.append(rolling_job(spark, tmp_path).start(trigger="0 seconds", on_batch=stop))
        is_there.set()
        with pytest.raises(OSError, match="no space left on device"):
            handles[0].await_termination(600)
    handles[0].stop()
    latest = Ledger(DocumentStore.at(str(tmp_path / "state" / "skypane"))).latest()
    assert latest is not None
    assert latest.batch_id >= 3
    assert latest.outbox == {}
    assert len(files_of(tmp_path / "out")) == 2


def test_the_file_is_written_in_time_while_the_stream_runs_and_no_rows_come(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:8])
    handle = rolling_job(spark, tmp_path, "2 seconds").start(trigger="0 seconds")
    try:
        for _ in range(600):
            if handle.await_termination(0.1):
                break
            if files_of(tmp_path / "out") and multiset(parquet_rows(tmp_path / "out")) == defined(BATCHES[:8]):
                return
        raise AssertionError("the answers are not in the folder")
    finally:
        handle.stop()


def test_versions_of_windows_that_share_a_file_are_current_for_their_reader(spark: SparkSession, tmp_path: Path):
    """Several queries, each of which is in the stream twice, with a file for each batch and with shared files."""
    batches = late_rows(41, batches=6, rows=80)
    write_batches(tmp_path / "in", batches)
    folders = {f"{name}-{way}": way for name in QUERIES for way in ("plain", "rolled")}
    handle = sp.streams(
        read_batches(spark, tmp_path / "in", batches[0].schema), {name: QUERIES[name.split("-")[0]] for name in folders},
        time="ts", window="30 seconds", slide="10 seconds", progress=sp.Watermark("2 seconds"), late=sp.Amend("12 seconds"),
        output={name: sp.Directory(str(tmp_path / name), roll="1 hour" if way == "rolled" else None) for name, way in folders.items()},
        checkpoint=tmp_path / "state",
    ).start(trigger="available now")  # fmt: skip
    assert handle.await_termination(600)
    handle.drain()
    for query in QUERIES:
        plain, rolled = (tmp_path / f"{query}-{way}" for way in ("plain", "rolled"))
        assert len(files_of(rolled)) <= 3 < len(files_of(plain)), query
        current, wanted = (multiset(sp.read_answers(spark, str(one)).toArrow()) for one in (rolled, plain))
        assert current == wanted, query
        assert multiset(parquet_rows(rolled)) == multiset(parquet_rows(plain)), query


def test_rejected_rows_that_wait_are_readmitted(spark: SparkSession, tmp_path: Path):
    reason, batches = "null price", late_rows(41, batches=6, rows=80)
    batches = [
        batch.set_column(3, "price", pc.if_else(pc.equal(pc.bit_wise_and(batch["id"], 7), 3), None, batch["price"]))
        for batch in batches
    ]
    write_batches(tmp_path / "in", batches)
    late = sp.Directory(str(tmp_path / "late"), roll="1 hour")
    handle = sp.stream(
        read_batches(spark, tmp_path / "in", batches[0].schema), QUERIES["best"], time="ts", window="30 seconds",
        progress=sp.Watermark("2 seconds"), late=sp.Amend("12 seconds", then=late), output=tmp_path / "out",
        checkpoint=tmp_path / "state",
    ).start(trigger="available now")  # fmt: skip
    assert handle.await_termination(600)
    rejected = sum(row["reason"] == reason for row in parquet_rows(tmp_path / "late").to_pylist())
    metrics = handle.readmit(reason, lambda rows: rows.fillna({"price": 1.0}))
    assert metrics is not None
    assert metrics.rows == rejected > 0
    with pytest.raises(sp.ConfigError, match="no rows to readmit"):
        handle.readmit(reason, lambda rows: rows.fillna({"price": 1.0}))


def test_a_query_that_fails_has_its_committed_answers_in_files(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:8])
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
        handle = rolling_job(spark, tmp_path).start(trigger="available now")
        with pytest.raises(sp.SkypaneError, match="the end comes here"):
            handle.await_termination(600)
    assert parquet_rows(tmp_path / "out").num_rows == sum(answered) > 0
    handle = rolling_job(spark, tmp_path).start(trigger="available now")
    assert handle.await_termination(600)
    assert multiset(parquet_rows(tmp_path / "out")) == defined(BATCHES[:8])
