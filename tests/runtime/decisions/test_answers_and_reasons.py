"""How long answers took on Spark, held to what is seen from outside, and every policy's decision in words."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skypane as sp

SCHEMA = "ts timestamp, price double"
WINDOW: dict[str, Any] = {"time": "ts", "window": "2 seconds", "progress": sp.Watermark("0 seconds")}


def lines_of(seconds: range) -> str:
    times = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)) for second in seconds)
    return "".join(json.dumps({"ts": at, "price": 1.0}) + "\n" for at in times)


def put(folder: Path, number: int, *, written: float | None = None) -> None:
    """Let a file appear, whole, that completes two windows; `written` is the time that it says it was written at."""
    draft = folder / f".{number}"
    draft.write_text(lines_of(range(4 * number, 4 * number + 4)))
    if written is not None:
        os.utime(draft, (written, written))
    draft.rename(folder / f"{number}.json")


def answered(handle: sp.StreamHandle) -> sp.BatchMetrics:
    """Return the last batch, once there are no more rows."""
    handle.query.processAllAvailable()
    return handle.recent_metrics(1)[0]


def test_answers_over_files_took_from_the_writing_of_the_file_to_the_commit(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, 0)
    rows = spark.readStream.schema(SCHEMA).json(str(folder))
    handle = sp.stream(rows, "price MIN", checkpoint=tmp_path / "state", output=tmp_path / "out", **WINDOW).start()
    first = answered(handle)
    for number, written in ((1, None), (2, first.started_at - 5)):  # the second one comes with an older time
        before = time.time()
        put(folder, number, written=written)
        last = answered(handle)
        assert last.batch_id == number
        assert last.latency is not None
        assert last.seconds["total"] <= last.latency <= time.time() - before + 0.01
    waited_since = last.started_at + 0.5 * last.seconds["total"]  # while the batch before it still ran
    before = time.time()
    put(folder, 3, written=waited_since)
    last = answered(handle)
    after = time.time()
    handle.stop()
    assert last.latency is not None
    assert before - waited_since <= last.latency <= after - waited_since + 0.01
    assert first.latency is not None
    assert first.latency <= after - first.started_at + 60
    assert last.latencies.answers == last.windows + sum(one.windows for one in handle.recent_metrics()[:-1])


def test_rows_of_inputs_for_which_a_batch_had_no_room_have_waited_since_they_were_seen(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "a.json"
    file.write_text(lines_of(range(24)))
    readers = sp.Readers(max_readers=2, latency="1 millisecond")
    rows = sp.inputs(spark, [file], SCHEMA, readers=readers, rows_per_trigger=8)
    before = time.time()
    handle = sp.stream(rows, "price MIN", checkpoint=tmp_path / "state", output=tmp_path / "out", **WINDOW).start(
        trigger="available now"
    )
    assert handle.await_termination(300)
    after = time.time()
    seen = handle.recent_metrics()
    assert [metrics.rows for metrics in seen] == [8, 8, 8]
    for metrics in seen:
        assert metrics.latency is not None
        behind = metrics.started_at - seen[0].started_at
        assert behind + metrics.seconds["total"] <= metrics.latency <= after - before
    judged = seen[-1].decision("latency")
    assert judged is not None
    assert judged.value == "missed"
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    missed = [line for line in warnings if "for the promised 1 ms since" in line]
    assert len(missed) == 1
    assert missed[0].endswith(f"; checkpoint {tmp_path / 'state'}")
    lines = handle.explain().splitlines()
    assert f"latency: missed; {judged.because}" in lines
    (readers_line,) = (line for line in lines if line.startswith("readers: "))
    assert "bound 1 millisecond -> " in readers_line
    assert [line for line in lines if line.startswith("assignment: ARI: ")]


def test_every_decision_of_the_last_batch_is_explained_in_its_line(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = spark.readStream.schema(SCHEMA).json(str(folder))
    workers = sp.WorkerOptions(plq_workers=1, wlq_workers=1, elastic=sp.Model(latency="1 hour", every=10))
    job = sp.stream(
        rows, "price MIN", checkpoint=tmp_path / "state", output=tmp_path / "out", workers=workers, **WINDOW
    )
    handle = job.start()
    assert handle.explain() == "workers: PLQ 1, WLQ 1: 0 of 10 batches measured, no decision yet"
    put(folder, 0)
    last = answered(handle)
    handle.stop()
    lines = dict(line.split(": ", 1) for line in handle.explain().splitlines())
    assert [*lines] == ["workers", *(one.what for one in last.decisions)]
    assert {"progress", "costs", "splitting", "exchange", "lift", "placement", "pace", "latency"} <= lines.keys()
    assert lines["workers"] == "PLQ 1, WLQ 1: 1 of 10 batches measured, no decision yet"
    assert all(lines[one.what].endswith(one.because) for one in last.decisions)
    assert lines["exchange"].startswith("no; ")
    assert lines["placement"].startswith(f"{last.wlq_where}; ")
    assert lines["latency"].startswith("kept; answers took ")


def test_the_decisions_of_several_queries_have_their_names(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, 0)
    rows = spark.readStream.schema(SCHEMA).json(str(folder))
    queries = {"best": sp.Skyline("price MIN"), "load": sp.Aggregate(n=sp.count())}
    job = sp.streams(rows, queries, checkpoint=tmp_path / "state", output=tmp_path / "out", **WINDOW)
    handle = job.start(trigger="available now")
    assert handle.await_termination(300)
    (last,) = handle.recent_metrics()
    lines = handle.explain().splitlines()
    for name in queries:
        for what in ("progress", "placement"):
            decision = last.of(name).decision(what)
            assert decision is not None
            (line,) = (line for line in lines if line.startswith(f"{what} of {name}: "))
            assert line.endswith(decision.because)
    assert len(lines) == 1 + len(last.decisions) + sum(len(one.decisions) for one in last.queries.values())
