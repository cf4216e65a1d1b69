"""Drivers of a continuous skyline are killed: no update is lost, none comes twice, and the front is always whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.parameters import times
from tests.runtime import continuous_streams as streams
from tests.runtime.continuous_driver import CRASHES, MODULE, job_of
from tests.runtime.driver import SLEEPS, Task
from tests.runtime.streams import finish, late_rows, parquet_rows, write_batches
from tests.runtime.test_recovery import Drivers, Stream, in_a_drain, kill_during_drains, kill_each, kill_itself

from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger


@pytest.fixture
def drivers(spark: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    del spark  # only one session at a time need start at leisure
    started = Drivers(tmp_path, MODULE)
    yield started
    started.close()


def assert_is_a_start(folder: Path, stream: Stream) -> None:
    """Output and front at any moment: what has been committed, and at most one batch more."""
    if not any((folder / "out").glob("*.parquet")):
        return
    emitted = streams.plain(parquet_rows(folder / "out"))
    batches = stream.batches()
    committed = list(chain(*streams.expected(batches))) if batches else []
    assert emitted[: len(committed)] == committed
    if (folder / "front" / "front.parquet").exists():
        assert streams.read_front(folder) in (streams.front_of(committed), streams.front_of(emitted))


def assert_is_complete(folder: Path, events: list[local.Event]) -> None:
    """Output, front, late rows and files are those of a stream that nothing has disturbed."""
    emitted = list(chain(*streams.expected(events)))
    assert streams.plain(parquet_rows(folder / "out")) == emitted
    assert streams.read_front(folder) == streams.front_of(emitted) != []
    assert sorted(parquet_rows(folder / "late")["id"].to_pylist()) == streams.late_ids(events) != []
    kept = DocumentStore.at(f"{folder}/checkpoint").child("skypane")
    manifest = Ledger(kept).latest()
    assert manifest is not None
    refs = [*chain(*manifest.operator["panes"].values()), *manifest.operator["front_partials"]]
    assert set(kept.child("partials").names()) == {ref[0] for ref in refs}
    assert [path.name for path in (folder / "front").iterdir() if path.is_file()].count("front.parquet") == 1
    assert not [path for path in folder.rglob("_staging/*/*") if path.is_file()]


def kill_at(crashes: list[str], drivers: Drivers, spark: SparkSession, folder: Path) -> None:
    files = late_rows(5, batches=2 * len(crashes))
    write_batches(folder / "in", files)
    stream = Stream(folder, files, write=False)
    for number, crash in enumerate(crashes, 1):
        kill_itself(drivers, Task(str(folder), crash), len(crashes) - number)
        assert_is_a_start(folder, stream)
    stream.note(finish(job_of(spark, Task(str(folder)))))
    assert_is_complete(folder, [*stream.batches()])


@pytest.mark.slow
def test_a_kill_before_the_front_moves(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at(["before the front moves"], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at([*CRASHES], drivers, spark, tmp_path)


@pytest.mark.slow
def test_many_kills_at_random_moments(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    stream, task = Stream(tmp_path, late_rows(12, batches=times(25))), Task(str(tmp_path))
    kill_each(drivers, task, times(10), random.Random(12), lambda: assert_is_a_start(tmp_path, stream))
    stream.note(finish(job_of(spark, task)))
    assert_is_complete(tmp_path, [*stream.batches()])


@pytest.mark.slow
def test_kills_during_a_drain(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """Each driver takes a batch, and is killed while it drains; the next one finishes that first."""
    task, crashes = Task(str(tmp_path)), in_a_drain(CRASHES)
    events = kill_during_drains(drivers, task, crashes, late_rows(7, batches=len(crashes)))
    finish(job_of(spark, task))
    assert_is_complete(tmp_path, events)


@pytest.mark.slow
@pytest.mark.parametrize("sleep", SLEEPS)
def test_a_second_driver_takes_over(sleep: str, drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """The first one sleeps in the middle of a batch; when it wakes, it says why it ends, and has changed nothing."""
    files = late_rows(5, batches=5)
    write_batches(tmp_path / "in", files)
    first = drivers.take(Task(str(tmp_path), sleep), left=0)
    while (output := first.line()) != "asleep":
        assert output, first.errors()
    finish(job_of(spark, Task(str(tmp_path))))
    assert_is_complete(tmp_path, [*files])
    first.go_on()
    assert "done" not in first.end()
    assert "another driver has started on the checkpoint" in first.errors()
    assert_is_complete(tmp_path, [*files])
