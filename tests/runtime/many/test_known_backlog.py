"""The backlog that the sources of real queries know of when they are stopped: the rows that no batch has read, and no others."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.streams import drained, start_knowing

import skypane as sp
from skypane.runtime.spark.known_backlog import known_backlog
from skypane.runtime.spark.sources.many.discovery import from_text
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.runtime.spark.sources.replay import replay

ROWS = 240
STEP = 20
"""Rows of a batch; of files, those of one file."""


def rows_of(start: int, end: int) -> pa.Table:
    seconds = pa.array([at * 1_000_000 for at in range(start, end)], pa.timestamp("us", "UTC"))
    return pa.table({"ts": seconds, "price": [float(at) for at in range(start, end)]})


def inputs(spark: SparkSession, folder: Path) -> DataFrame:
    for name, start in (("a", 0), ("b", ROWS // 2)):
        rows = rows_of(start, start + ROWS // 2)
        lines = zip(rows["ts"].cast(pa.string()).to_pylist(), rows["price"].to_pylist(), strict=True)
        text = "".join(f'{{"ts": "{at}", "price": {1000 + price}}}\n' for at, price in lines)
        (folder / f"{name}.json").write_text(text)
    return sp.inputs(
        spark,
        [str(folder / end) for end in ("*.json", "*.json.gz")],
        "ts timestamp, price double",
        rows_per_trigger=STEP,
    )


def recording(spark: SparkSession, folder: Path) -> DataFrame:
    pq.write_table(rows_of(0, ROWS), folder / "rows.parquet")
    return replay(spark, folder / "rows.parquet", rows_per_trigger=STEP)


def files(spark: SparkSession, folder: Path) -> DataFrame:
    (folder / "in").mkdir(exist_ok=True)
    for start in range(0, ROWS, STEP):
        pq.write_table(rows_of(start, start + STEP), folder / "in" / f"{start:04}.parquet")
    reader = spark.readStream.schema("ts timestamp, price double").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "in"))


def job_of(rows: DataFrame, folder: Path) -> sp.Job:
    return sp.stream(
        rows, "price MIN", time="ts", window="30 seconds", progress=sp.Watermark("1 hour"),
        checkpoint=folder / "checkpoint", output=folder / "out",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (inputs, "{left} rows of 2 inputs wait"),
        (recording, "{left} rows wait"),
        (files, "the rows of a batch that has begun wait"),
    ],
)
def test_a_drain_of_a_stopped_query_states_the_backlog_and_the_next_start_reads_it(
    spark: SparkSession, tmp_path: Path, source: Callable[[SparkSession, Path], DataFrame], words: str
):
    rows = source(spark, tmp_path)
    handle = start_knowing(job_of(rows, tmp_path), lambda handle, _: handle.stop())
    handle.await_termination(120)
    left = ROWS - handle.recent_metrics(1)[0].totals["read"]
    assert left > 0
    with pytest.raises(sp.SkypaneError, match=words.format(left=left)):
        handle.drain()
    last = drained(job_of(rows, tmp_path))[-1]
    assert last.totals == {"read": ROWS, "answered": ROWS, "late": 0, "quarantined": 0, "held": 0, "open": 0}


@pytest.mark.parametrize("rows", [None, 100, 3])
@pytest.mark.parametrize("tail", ["", '{"price": 1', "x" * 300])
def test_a_last_line_without_an_end_does_not_wait_to_be_read(tmp_path: Path, rows: int | None, tail: str):
    """It is not a row yet; a drain that waited for its end would be refused forever."""
    path = tmp_path / "rows.json"
    path.write_text('{"price": 1.0}\n' * 5 + tail)
    planner = Planner(lambda: from_text(json.dumps([str(path)])), 1)
    planner.latest(Offsets({}), rows)
    (seen,) = planner.seen(0.0)
    assert seen.state == ("behind" if rows == 3 else "read")
    assert (seen.lag > 0) is (rows == 3)
    assert seen.unended == (0 if rows == 3 else len(tail))


@pytest.mark.parametrize("rows", [None, 100, 3])
@pytest.mark.parametrize("tail", ["", '{"price": 1'])
@pytest.mark.parametrize("left", [0, 3, 30])
def test_a_member_that_has_not_ended_does_not_wait_to_be_read(tmp_path: Path, rows: int | None, tail: str, left: int):
    path, member = tmp_path / "rows.json.gz", gzip.compress(b'{"price": 2.0}\n' * 5)
    cut = member[:-left] if left else b""
    path.write_bytes(gzip.compress(b'{"price": 1.0}\n' * 5 + tail.encode()) + cut)
    planner, start = Planner(lambda: from_text(json.dumps([str(path)])), 1), Offsets({})
    for count in (rows, 100):
        start = planner.latest(start, count)
        (seen,) = planner.seen(0.0)
        assert seen.offset == (45 if count == 3 else 75)
        assert (seen.state == "behind") is (seen.lag > 0) is (count == 3)
        assert count == 3 or seen.unended == len(tail) + len(cut)


@pytest.mark.parametrize(("name", "tail"), [("b.json", b'{"ts": "1970-01-01 00:03:00", "price": 1'),
                                            ("c.json.gz", gzip.compress(b'{"ts": "1970-01-01 00:03:00", "price": 1}\n')[:-1])])  # fmt: skip
def test_a_drain_names_what_has_not_ended(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, tail: bytes
):
    (tmp_path / name).touch()
    rows = inputs(spark, tmp_path)
    with (tmp_path / name).open("ab") as file:
        file.write(tail)
    drained(job_of(rows, tmp_path))
    assert f"is in no answer: {tmp_path}/{name} ({len(tail)} bytes); end it" in caplog.text


def reported(description: str, newest: Any, end: Any) -> str:
    source = {"description": description, "latestOffset": newest, "endOffset": end}
    return known_backlog(cast("Any", SimpleNamespace(lastProgress={"sources": [source]})))


KAFKA = "KafkaV2[Subscribe[bids]]"


@pytest.mark.parametrize(
    ("description", "newest", "end", "words"),
    [
        (KAFKA, {"bids": {"0": 30, "1": 10}}, {"bids": {"0": 25, "1": 10}}, "5 messages of 1 partition"),
        (KAFKA, {"bids": {"0": 30, "1": 10}}, {"bids": {"0": 25, "1": 1}}, "14 messages of 2 partitions"),
        (KAFKA, {"bids": {"0": 30, "1": 10}}, {"bids": {"0": 30, "1": 10}}, ""),
        (KAFKA, '{"bids": {"0": 30}}', '{"bids": {"0": 29}}', "1 message of 1 partition"),
        (KAFKA, {"bids": {"0": 30, "1": 9}}, {"bids": {"0": 30}}, ""),
        (KAFKA, None, {"bids": {"0": 25}}, ""),
        ("FileStreamSource[file:/in]", None, {"logOffset": 3}, ""),
        ("RateStreamV2[rowsPerSecond=10]", 5, 4, ""),
        ("DeltaSource[file:/t]", {"reservoirVersion": 5, "index": -1}, {"reservoirVersion": 4, "index": 2}, ""),
        ("of another package", {"position": 5}, {"position": 4}, ""),
    ],
)
def test_what_sources_report_is_counted_and_what_is_not_known_is_not_claimed(
    description: str, newest: Any, end: Any, words: str
):
    """Spark's own connector of Kafka is a package for Java that these tests do not have; the values are of the form of its documentation."""
    assert reported(description, newest, end) == words


def test_a_query_without_a_batch_knows_nothing():
    assert known_backlog(cast("Any", SimpleNamespace(lastProgress=None))) == ""
