"""Streams that pause between batches: what they answer, and what ends a pause."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.parameters import slow_but
from tests.runtime.decisions.test_control_loop import decision_of
from tests.runtime.pace_driver import PER_SECOND, LiveStream, live_job
from tests.runtime.streams import expected, finish, late_rows, parquet_rows, skylines_of, windows_of

import skypane as sp

LIMIT = 300


def counted_once(answers: pa.Table) -> None:
    """Windows that follow one another have all rows up to the last one, each once."""
    rows = sorted(answers.to_pylist(), key=lambda row: row["window_start"])
    assert rows[0]["first"] == 0
    for row in rows:
        assert row["n"] == row["last"] - row["first"] + 1
    for row, following in pairwise(rows):
        assert following["first"] == row["last"] + 1


def one_window_counted_once(folder: Path) -> None:
    answers = parquet_rows(folder / "out")
    assert answers.num_rows == 1
    counted_once(answers)


def drain(job: sp.Job) -> None:
    handle = job.start(trigger="available now")
    assert handle.await_termination(LIMIT), handle.status
    handle.drain()


def test_a_live_stream_answers_each_window_and_pauses_between_them(spark: SparkSession, tmp_path: Path):
    stream = LiveStream(live_job(spark, tmp_path, "2 seconds"))
    stream.wait_for_windows(3)
    stream.handle.drain()
    answers = parquet_rows(tmp_path / "out")
    counted_once(answers)
    assert sorted(answers["n"].to_pylist())[-2:] == [2 * PER_SECOND] * 2
    for batch in stream.seen[:-1]:
        decision = decision_of(batch, "pace")
        assert (decision.value, bool(decision.because)) == (batch.pause, True)
    assert stream.seen[-1].pause == 0, "a drain is not followed by a batch"


@pytest.mark.parametrize("way", slow_but(["drain"], ["stop", "stop of Spark", "drain", "interrupt"]))
def test_a_pause_ends_with_the_query(way: str, spark: SparkSession, tmp_path: Path):
    job = live_job(spark, tmp_path, "7 days")
    stream = LiveStream(job)
    handle = stream.handle
    stream.wait_for_pause()
    ends: dict[str, Callable[[], object]] = {
        "stop": handle.stop,
        "stop of Spark": handle.query.stop,
        "drain": handle.drain,
        "interrupt": lambda: _interrupted(handle),
    }
    ends[way]()
    assert handle.await_termination(LIMIT)
    assert handle.status["error"] is None
    assert handle.query.exception() is None
    if way != "drain":
        drain(job)
    one_window_counted_once(tmp_path)


def _interrupted(handle: sp.StreamHandle) -> None:
    hand = threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT))
    with handle.interruptible():
        hand.start()
        hand.join()
    assert handle.interrupted


@pytest.mark.slow
def test_a_query_that_is_killed_in_a_pause_counts_each_row_once(spark: SparkSession, tmp_path: Path):
    command = [sys.executable, "-m", "tests.runtime.pace_driver", str(tmp_path)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=2 * LIMIT, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3_000:]
    offsets, commits = (
        {int(path.name) for path in (tmp_path / "checkpoint" / name).glob("[0-9]*")} for name in ("offsets", "commits")
    )
    assert offsets - commits == {max(offsets)}, "Spark commits a batch after its pause"
    drain(live_job(spark, tmp_path, "7 days"))
    one_window_counted_once(tmp_path)


@pytest.mark.parametrize("trigger", ["available now", None])
def test_rows_that_wait_are_read_without_a_pause(trigger: str | None, spark: SparkSession, tmp_path: Path):
    batches, memory = late_rows(4, batches=10), sp.Memory()
    plan, job = skylines_of(spark, tmp_path, batches, memory)
    if trigger is None:
        seen: list[sp.BatchMetrics] = []
        done = threading.Event()

        def see(batch: sp.BatchMetrics) -> None:
            seen.append(batch)
            if len(seen) == len(batches):
                done.set()

        handle = job.start(on_batch=see)
        assert done.wait(LIMIT)
        handle.stop()
        reasons = {decision_of(batch, "pace").because for batch in seen[4:]}
        assert reasons <= {"event time does not keep up with the clock, or is faster"}
    else:
        seen = finish(job)
        assert not any(decision.what == "pace" for batch in seen for decision in batch.decisions)
    assert [batch.pause for batch in seen] == [0.0] * len(batches)
    assert windows_of(memory.table()) == expected(plan, batches)
