"""Drivers are killed while late rows amend answers: each version of each window is there once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.test_amended import assert_as_defined
from tests.runtime.driver import CRASHES, Task, job_of
from tests.runtime.streams import SECOND, finish, late_rows, write_batches
from tests.runtime.test_recovery import Drivers, Stream, in_a_drain, kill_during_drains, kill_itself

from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger

WITHIN = 12 * SECOND


@pytest.fixture
def drivers(spark: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    del spark  # only one session at a time need start at leisure
    started = Drivers(tmp_path)
    yield started
    started.close()


def kill_at(
    crashes: Sequence[str], drivers: Drivers, spark: SparkSession, folder: Path, share: float | None = None
) -> None:
    files = late_rows(33, batches=4 + 2 * len(crashes), rows=90)
    write_batches(folder / "in", files[:4])
    task, stream = Task(str(folder), amend=WITHIN, share=share), Stream(folder, files, write=False)
    finish(job_of(spark, task))
    write_batches(folder / "in", files[4:], first=4)
    for number, crash in enumerate(crashes, 1):
        kill_itself(drivers, replace(task, crash=crash), len(crashes) - number)
    finish(job_of(spark, task))
    assert_as_defined(folder, task.plan, stream.batches())


def test_a_kill_after_the_sink(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """The batch comes again, with the state before it: it amends the same windows, as the same versions."""
    kill_at(["after the sink"], drivers, spark, tmp_path)


def test_a_kill_before_the_commit_leaves_the_budget_of_amended_windows(
    drivers: Drivers, spark: SparkSession, tmp_path: Path
):
    """The repeated batch finds the memories and the account of the batch before it: it decides the same."""
    kill_at(["before the commit"], drivers, spark, tmp_path, share=0.3)
    last = Ledger(DocumentStore.at(str(tmp_path / "checkpoint" / "skypane"))).latest()
    assert last is not None
    policy = Task("", amend=WITHIN, share=0.3).plan.progress
    rows = late_rows(33, batches=6, rows=90)
    outcomes = [outcome.amended for outcome in local.run(Task("", amend=WITHIN, share=0.3).plan, rows)]
    assert outcomes[-1] is not None
    assert policy.restore(last.progress).of_windows
    assert last.operator["closed"]["amended_once"] == outcomes[-1].all_amended > 0


@pytest.mark.slow
def test_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at([*CRASHES], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_during_a_drain(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """Each driver takes a batch, and is killed while it drains; the next one finishes that first, and amends what it answered."""
    task, crashes = Task(str(tmp_path), amend=WITHIN), in_a_drain(CRASHES)
    events = kill_during_drains(drivers, task, crashes, late_rows(33, batches=len(crashes), rows=90))
    finish(job_of(spark, task))
    assert_as_defined(tmp_path, task.plan, events)
