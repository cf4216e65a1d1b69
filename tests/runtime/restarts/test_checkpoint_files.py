from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import expected, finish, late_rows, parquet_rows, windows_of, write_batches

from skypane.locations import Location
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle
from skypane.runtime.spark.machine.checkpoint_files import MANAGER, local_files, manager_of
from skypane.types import SkypaneError


@pytest.fixture(autouse=True)
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as a user's is, which says nothing of Spark's files, for tests that say something of them in it."""
    before = str(spark.conf.get(MANAGER))
    spark.conf.unset(MANAGER)
    yield spark
    spark.conf.set(MANAGER, before)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(str(tmp_path), late=False)


def test_the_batches_of_a_job_run_with_quick_files_and_the_session_stays_as_it_is(
    spark: SparkSession, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str | None] = []
    take = BatchLifecycle.__call__

    def watched(turns: BatchLifecycle, rows: DataFrame, batch_id: int) -> None:
        seen.append(rows.sparkSession.conf.get(MANAGER, None))
        take(turns, rows, batch_id)

    monkeypatch.setattr(BatchLifecycle, "__call__", watched)
    write_batches(tmp_path / "in", late_rows(3)[:2])
    finish(job_of(spark, task))
    assert set(seen) == {manager_of(spark.version)}
    assert spark.conf.get(MANAGER, None) is None


def test_settings_of_the_session_for_spark_files_are_kept(session: SparkSession, task: Task, tmp_path: Path):
    session.conf.set(MANAGER, "no.such.Manager")
    write_batches(tmp_path / "in", late_rows(3)[:1])
    with pytest.raises(SkypaneError, match=r"no\.such\.Manager"):
        job_of(session, task).start()
    assert session.conf.get(MANAGER) == "no.such.Manager"


@pytest.mark.core
@pytest.mark.parametrize("quick_first", [True, False])
def test_a_checkpoint_of_one_kind_continues_with_the_other(
    session: SparkSession, task: Task, tmp_path: Path, quick_first: bool
):
    files, quick = late_rows(3), manager_of(session.version)
    assert quick is not None
    sparks_own = quick.replace("FileSystemBased", "FileContextBased")
    half = len(files) // 2
    for first, some in enumerate((files[:half], files[half:])):
        if quick_first == bool(first):
            session.conf.set(MANAGER, sparks_own)
        else:
            session.conf.unset(MANAGER)
        write_batches(tmp_path / "in", some, first=first * half)
        finish(job_of(session, task))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, files)


def test_other_places_are_left_to_spark(spark: SparkSession):
    with local_files(spark, Location.of("s3a://bucket/checkpoint")):
        assert spark.conf.get(MANAGER, None) is None
