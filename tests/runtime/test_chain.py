"""Two stages of windows: the answers of a query are the rows of the next one, each exactly once, through kills of both."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.chain_driver import FIRST, SECOND_STAGE, Crash, first, run, second
from tests.runtime.driver import assert_killed
from tests.runtime.streams import answers, expected, late_rows, parquet_rows, windows_of, write_batches
from tests.servers.kafka import Broker

from skypane.runtime import local


def assert_answered(folder: Path, tables: list[pa.Table], kafka: Broker | None = None) -> None:
    """Hold both stages against the definition; the rows of the second are all answers of the first, which are in order."""
    for name, plan in FIRST.items():
        found = messages(kafka, folder.name) if kafka and name == "counts" else parquet_rows(folder / "out" / name)
        assert windows_of(found) == expected(plan, [*tables, local.Drain()]), name
    counts = answers(FIRST["counts"], [*tables, local.Drain()])
    assert windows_of(parquet_rows(folder / "totals")) == expected(SECOND_STAGE, [counts, local.Drain()])


def messages(kafka: Broker, topic: str) -> pa.Table:
    """Return the rows of a topic, in order, as a folder of parquet would have them."""
    schema = answers(FIRST["counts"], [late_rows(0, batches=1)[0], local.Drain()]).schema
    found = [json.loads(value or "") for _, value in kafka.committed(topic)]
    times = [{name: datetime.fromisoformat(row[name]) for name in ("window_start", "window_end")} for row in found]
    return pa.Table.from_pylist([row | bounds for row, bounds in zip(found, times, strict=True)], schema)


def finish(spark: SparkSession, folder: Path, tables: list[pa.Table], kafka: Broker | None = None) -> None:
    """Run both stages to the end of the stream, and drain them in order."""
    address = kafka.address if kafka else ""
    run(first(spark, folder, kafka=address)).drain()
    metrics = run(second(spark, folder, files=1, kafka=address)).drain()
    assert metrics is not None
    assert metrics.totals["late"] == metrics.totals["open"] == 0
    assert_answered(folder, tables, kafka)


@pytest.mark.parametrize("cut", [False, True])
def test_the_answers_of_a_query_are_the_rows_of_the_next(spark: SparkSession, tmp_path: Path, cut: bool):
    """Also where several workers answer the windows of a batch, and the next query reads a file a batch."""
    tables = late_rows(1, batches=6)
    write_batches(tmp_path / "in", tables[:5])
    run(first(spark, tmp_path, cut=cut))
    run(second(spark, tmp_path, files=1))
    write_batches(tmp_path / "in", tables[5:], first=5)
    finish(spark, tmp_path, tables)


def test_both_stages_run_side_by_side_in_one_process(spark: SparkSession, tmp_path: Path):
    tables = late_rows(2, batches=6)
    write_batches(tmp_path / "in", tables[:3])
    job = first(spark, tmp_path)
    stages = [job.start(), second(spark, tmp_path).start()]
    write_batches(tmp_path / "in", tables[3:], first=3)
    for stage in stages:
        stage.query.processAllAvailable()
        stage.stop()
    finish(spark, tmp_path, tables)


def test_kills_of_either_stage_lose_and_double_nothing(spark: SparkSession, tmp_path: Path):
    """A repeated batch is cut into other files than the first try, whose file the second stage has read."""
    crashes = (
        Crash(1, "before the second output", cut=True),
        Crash(1, "before the commit", cut=True),
        Crash(2, "before the commit", cut=False),
    )
    tables = late_rows(3, batches=4 + len(crashes))
    write_batches(tmp_path / "in", tables[:4])
    for number, crash in enumerate(crashes, 4):
        write_batches(tmp_path / "in", [tables[number]], first=number)
        crash.write(tmp_path)
        assert_killed("tests.runtime.chain_driver", tmp_path)
        if crash.stage == 1:
            run(second(spark, tmp_path, files=1))
    finish(spark, tmp_path, tables)


def test_the_answers_of_a_query_are_the_rows_of_the_next_through_a_topic(
    spark: SparkSession, tmp_path: Path, kafka: Broker
):
    """Windows that workers have answered first, and then windows of the driver."""
    kafka.create(tmp_path.name)
    tables = late_rows(6, batches=6)
    write_batches(tmp_path / "in", tables[:5])
    run(first(spark, tmp_path, cut=True, kafka=kafka.address))
    run(second(spark, tmp_path, kafka=kafka.address))
    write_batches(tmp_path / "in", tables[5:], first=5)
    finish(spark, tmp_path, tables, kafka)


@pytest.mark.slow
def test_a_topic_between_the_stages_has_each_answer_once_over_kills_of_either(
    spark: SparkSession, tmp_path: Path, kafka: Broker
):
    """The second stage reads between a kill of the first one and its next start, which repeats the batch."""
    crashes = (
        Crash(1, "before the transaction ends", cut=False, kafka=kafka.address),
        Crash(1, "before the second output", cut=True, kafka=kafka.address),
        Crash(1, "before the commit", cut=False, kafka=kafka.address),
        Crash(2, "before the commit", cut=False, kafka=kafka.address),
    )
    grows = (False, True, False, True)  # the third finds its batch in the topic
    kafka.create(tmp_path.name)
    tables = late_rows(5, batches=4 + len(crashes))
    write_batches(tmp_path / "in", tables[:4])
    for number, crash in enumerate(crashes, 4):
        write_batches(tmp_path / "in", [tables[number]], first=number)
        before = len(kafka.committed(tmp_path.name))
        crash.write(tmp_path)
        assert_killed("tests.runtime.chain_driver", tmp_path)
        assert (len(kafka.committed(tmp_path.name)) > before) == grows[number - 4]
        if crash.stage == 1:
            run(second(spark, tmp_path, kafka=kafka.address))
    finish(spark, tmp_path, tables, kafka)


def test_a_file_that_the_next_query_has_read_stays_when_the_batch_is_repeated(spark: SparkSession, tmp_path: Path):
    """The first of two files is there when the process dies; the next try makes one file in the driver."""
    tables = late_rows(4, batches=6)
    write_batches(tmp_path / "in", tables)
    Crash(1, "before the second file", cut=True).write(tmp_path)
    assert_killed("tests.runtime.chain_driver", tmp_path)
    read = parquet_rows(tmp_path / "out" / "counts")
    assert read.num_rows
    run(second(spark, tmp_path))
    finish(spark, tmp_path, tables)
