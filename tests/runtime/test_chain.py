"""Two stages of windows: the answers of a query are the rows of the next one, each exactly once, through kills of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.nature.places import BEFORE_COMMIT
from tests.parameters import slow_but
from tests.runtime.chain_driver import (
    COUNTED,
    FIRST,
    SECOND_FILE,
    SECOND_OUTPUT,
    SECOND_STAGE,
    TRANSACTION,
    Stop,
    first,
    second,
)
from tests.runtime.driver import assert_killed
from tests.runtime.streams import answers, ended, expected, late_rows, parquet_rows, windows_of, write_batches
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
    ended(first(spark, folder, kafka=address)).drain()
    metrics = ended(second(spark, folder, files=1, kafka=address)).drain()
    assert metrics is not None
    assert metrics.totals["late"] == metrics.totals["open"] == 0
    assert_answered(folder, tables, kafka)


def run_in_two_parts(
    spark: SparkSession, folder: Path, tables: list[pa.Table], *, cut: bool, kafka: Broker | None = None
) -> None:
    """Run both stages over five batches, and to the end of the stream, where the driver answers the windows."""
    address = kafka.address if kafka else ""
    write_batches(folder / "in", tables[:5])
    ended(first(spark, folder, cut=cut, kafka=address))
    ended(second(spark, folder, files=1, kafka=address))
    write_batches(folder / "in", tables[5:], first=5)
    finish(spark, folder, tables, kafka)


@pytest.mark.parametrize("cut", slow_but([True], [False, True]))
def test_the_answers_of_a_query_are_the_rows_of_the_next(spark: SparkSession, tmp_path: Path, cut: bool):
    """Also where several workers answer the windows of a batch, and the next query reads a file a batch."""
    run_in_two_parts(spark, tmp_path, late_rows(1, batches=6), cut=cut)


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


STOPS = {
    "first-output": Stop(1, SECOND_OUTPUT, cut=True),
    "first-commit": Stop(1, BEFORE_COMMIT, cut=True),
    "second-commit": Stop(2, BEFORE_COMMIT, cut=False),
    "first-file": Stop(1, SECOND_FILE, cut=True),
}


def begin(folder: Path, stops: Mapping[str, Stop]) -> dict[str, list[pa.Table]]:
    """Have chains in folders of these names stop where they are to, and kill the process that runs them; return their rows."""
    rows = {name: late_rows(3 + number, batches=6) for number, name in enumerate(stops)}
    for name, stop in stops.items():
        write_batches(folder / name / "in", rows[name])
        stop.write(folder / name)
    assert_killed("tests.runtime.chain_driver", folder)
    return rows


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[pa.Table]]]:
    """The folder of the chains of STOPS, one beside the other, all killed at once; and their rows."""
    del spark  # only one session at a time need start at leisure
    folder = tmp_path_factory.mktemp("chains")
    return folder, begin(folder, STOPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first-output", "first-commit", "second-commit"])
def test_kills_of_either_stage_lose_and_double_nothing(
    name: str, killed: tuple[Path, dict[str, list[pa.Table]]], spark: SparkSession
):
    """A repeated batch is cut into other files than the first try, whose file the second stage has read."""
    folder, rows = killed
    if STOPS[name].stage == 1:
        ended(second(spark, folder / name, files=1))
    finish(spark, folder / name, rows[name])


@pytest.mark.slow
def test_a_file_that_the_next_query_has_read_stays_when_the_batch_is_repeated(
    killed: tuple[Path, dict[str, list[pa.Table]]], spark: SparkSession
):
    """The first of two files is there when the process dies; the next try makes one file in the driver."""
    folder, rows = killed
    chain = folder / "first-file"
    assert parquet_rows(chain / "out" / "counts").num_rows
    ended(second(spark, chain))
    finish(spark, chain, rows["first-file"])


@pytest.mark.slow
def test_the_answers_of_a_query_are_the_rows_of_the_next_through_a_topic(
    spark: SparkSession, tmp_path: Path, kafka: Broker
):
    """Windows that workers have answered first, and then windows of the driver."""
    kafka.create(tmp_path.name)
    run_in_two_parts(spark, tmp_path, late_rows(6, batches=6), cut=True, kafka=kafka)


@pytest.mark.slow
def test_a_topic_between_the_stages_has_each_answer_once_over_kills_of_either(
    spark: SparkSession, tmp_path: Path, kafka: Broker
):
    """The second stage reads between a kill of the first one and its next start, which repeats the batch."""
    places = (("transaction", 1, TRANSACTION, False), ("output", 1, SECOND_OUTPUT, True), ("commit", 1, BEFORE_COMMIT, False),
              ("second", 2, BEFORE_COMMIT, False))  # fmt: skip
    stops = {
        f"{tmp_path.name}-{name}": Stop(stage, place, cut=cut, kafka=kafka.address)
        for name, stage, place, cut in places
    }
    for topic in stops:
        kafka.create(topic)
    rows = begin(tmp_path, stops)
    for topic, stop in stops.items():
        before = int((tmp_path / topic / COUNTED).read_text()) if stop.stage == 1 else 0
        is_read = len(kafka.committed(topic)) > before
        assert is_read == (stop.place != TRANSACTION), "a batch that was not committed is not read"
        if stop.stage == 1:
            ended(second(spark, tmp_path / topic, kafka=kafka.address))
    for topic in stops:
        finish(spark, tmp_path / topic, rows[topic], kafka)
