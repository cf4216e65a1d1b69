"""A stream of inputs of unequal size that catches up with a backlog: over kills and restarts, with files and with Kafka."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.runtime.many.catch_up_driver import POLICY, QUERY, SLIDE, WINDOW, catch_up
from tests.runtime.many.killed_drivers import killed_at
from tests.runtime.streams import answers, finish, parquet_rows, windows_of

import skypane as sp
from skypane.plan import Plan
from skypane.runtime import local
from skypane.windows import Windows

SECOND = 1_000_000


def backlog(count: int) -> pa.Table:
    """Rows of 20 minutes, 5 % of them up to a minute late; a third of them are of input 0, the others of input 1."""
    rng = np.random.default_rng(1)
    late = (rng.random(count) < 0.05) * rng.integers(0, 60 * SECOND, count)
    times = 1_767_225_600 * SECOND + np.arange(count) * (1200 * SECOND // count) - late
    return pa.table({
        "ts": pa.array(times, pa.timestamp("us", "UTC")), "price": rng.permutation(count).astype(float),
        "input": pa.array(np.where(rng.random(count) < 1 / 3, "0", "1")),
    })  # fmt: skip


def csv(rows: pa.Table) -> list[bytes]:
    texts = np.datetime_as_string(rows["ts"].to_numpy().astype("datetime64[us]"), timezone="UTC")
    return [f"{text},{price}".encode() for text, price in zip(texts, rows["price"].to_pylist(), strict=True)]


def of(rows: pa.Table, name: str) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["input"], name))


def write_files(folder: Path, rows: pa.Table) -> None:
    for name in ("0", "1"):
        (folder / f"{name}.csv").write_bytes(b"\n".join([*csv(of(rows, name)), b""]))
    (folder / "inputs.json").write_text(json.dumps([{"path": f"{folder}/{name}.csv", "name": name} for name in "01"]))


@pytest.mark.slow
def test_a_stream_that_is_killed_while_it_catches_up_loses_no_row(spark, tmp_path):
    """The answers are those of all rows at once: none is late, though batches hold two of 20 minutes and rows may wait three."""
    rows = backlog(6_000)
    write_files(tmp_path, rows)
    for last in (2, 5):
        killed_at(f"batch {last}\n", "tests.runtime.many.catch_up_driver", tmp_path)
    job = catch_up(spark, tmp_path)
    seen = finish(job)
    job.start(trigger="available now").drain()
    assert seen[-1].totals["read"] == len(rows)
    assert seen[-1].totals["late"] == 0
    plan = Plan(QUERY, Windows.of(WINDOW, SLIDE), "ts", POLICY)
    expected = answers(plan, [rows.select(["ts", "price", "input"]), local.Drain()])
    assert windows_of(parquet_rows(tmp_path / "out")) == windows_of(expected)


def stopped_after(job: sp.Job, batch: int) -> None:
    """Run a job until a batch is committed, and stop it."""
    there = threading.Event()
    handle = job.start(on_batch=lambda metrics: there.set() if metrics.batch_id == batch else None)
    assert there.wait(300)
    handle.stop()


@pytest.mark.slow
@pytest.mark.parametrize("progress", [sp.Watermark("20 seconds"), sp.AqKSlack(0.01)])
def test_a_backlog_of_topics_is_read_in_step_over_a_restart(spark, tmp_path, kafka, progress):
    """Two partitions, one with twice as many messages; without alignment a fixed delay drops a quarter of the rows."""
    rows, topic = backlog(12_000), f"backlog-{tmp_path.name}"
    kafka.create(topic, 2)
    for name in "01":
        kafka.send(topic, csv(of(rows, name)), int(name))
    late = {}
    for align in (True, False):
        folder = tmp_path / str(align)
        folder.mkdir()
        (folder / "inputs.json").write_text(json.dumps([{"kafka": kafka.address, "topic": topic, "format": "csv"}]))
        options = {"align": align, "progress": progress, "rows": 1200}
        stopped_after(catch_up(spark, folder, **options), 3)
        seen = finish(catch_up(spark, folder, **options))
        assert seen[-1].totals["read"] == len(rows)
        late[align] = seen[-1].totals["late"] / len(rows)
    assert late[True] < 0.01
    assert (late[False] > 0.1) == isinstance(progress, sp.Watermark)  # AqKSlack waits for the partition that lags


@pytest.mark.slow
def test_a_slack_does_not_learn_from_an_input_that_is_behind(spark, tmp_path):
    """An input joins whose rows are an hour older than the stream: they are dropped, and counted apart."""
    rows = backlog(3_000)
    old = rows.set_column(0, "ts", pa.array(rows["ts"].cast(pa.int64()).to_numpy() - 3600 * SECOND, rows["ts"].type))
    (tmp_path / "now.csv").write_bytes(b"\n".join([*csv(rows), b""]))
    (tmp_path / "inputs.json").write_text(json.dumps([f"{tmp_path}/*.csv"]))
    finish(catch_up(spark, tmp_path, progress=sp.AqKSlack(0.01)))
    (tmp_path / "old.csv").write_bytes(b"\n".join([*csv(old), b""]))
    *between, last = finish(catch_up(spark, tmp_path, progress=sp.AqKSlack(0.01)))
    assert len(between) == 4
    decision = last.decision("progress")
    assert decision is not None
    assert decision.figures["longest"] < 120 * SECOND
    assert last.unavoidable_rows is not None
    assert last.dropped_rows - 30 <= last.unavoidable_rows <= last.dropped_rows
    assert last.dropped_rows > 2_900
