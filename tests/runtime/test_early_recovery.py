"""Drivers are killed while open windows are answered early: each version is there once, and the changes add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.reading import read_by_spark
from tests.engine.test_early import expected, last
from tests.runtime.driver import CRASHES, Task, job_of
from tests.runtime.streams import SECOND, finish, late_rows, parquet_rows, write_batches
from tests.runtime.test_recovery import Drivers, Stream, in_a_drain, kill_during_drains, kill_itself

from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.window_state import WindowState

WITHIN, EARLY = 12 * SECOND, 5 * SECOND


@pytest.fixture
def drivers(spark: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    del spark  # only one session at a time need start at leisure
    started = Drivers(tmp_path)
    yield started
    started.close()


def task_in(folder: Path, crash: str | None = None) -> Task:
    return Task(str(folder), crash, amend=WITHIN, early=EARLY)


def kill_at(crashes: Sequence[str], drivers: Drivers, spark: SparkSession, folder: Path) -> None:
    files = late_rows(33, batches=4 + 2 * len(crashes), rows=90)
    write_batches(folder / "in", files[:4])
    stream = Stream(folder, files, write=False)
    finish(job_of(spark, task_in(folder)))
    write_batches(folder / "in", files[4:], first=4)
    for number, crash in enumerate(crashes, 1):
        kill_itself(drivers, task_in(folder, crash), len(crashes) - number)
    finish(job_of(spark, task_in(folder)))
    assert_added_up(spark, folder, stream.batches())


def assert_added_up(spark: SparkSession, folder: Path, events: Sequence[local.Event]) -> None:
    """The changes of the output add up to the last versions of the definition; it has as many rows, and no other file is left."""
    plan = task_in(folder).plan
    assert plan.amend is not None
    changing = replace(plan, amend=replace(plan.amend, changes=True))
    wanted = expected(plan, events)
    assert any(early for versions in wanted.values() for early, _ in versions)
    assert read_by_spark(spark, folder / "out") == last(wanted)
    written = parquet_rows(folder / "out")
    assert written.num_rows == sum(answer.rows.num_rows for answer in local.answers(changing, events))
    ledger = Ledger(DocumentStore.at(str(folder / "checkpoint" / "skypane")))
    manifest = ledger.latest()
    assert manifest is not None
    state = WindowState.restored(changing, manifest.progress, manifest.operator)
    assert {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()} == state.files


def test_a_kill_after_the_sink(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """The batch comes again, with the state before it: it answers the same windows early, as the same versions."""
    kill_at(["after the sink"], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at([*CRASHES], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_during_a_drain(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """Each driver takes a batch, answers early, and is killed while it drains; the next one finishes that first."""
    task, crashes = task_in(tmp_path), in_a_drain(CRASHES)
    events = kill_during_drains(drivers, task, crashes, late_rows(33, batches=len(crashes), rows=90))
    finish(job_of(spark, task))
    assert_added_up(spark, tmp_path, events)
