"""A start that fails before the first batch, or before a sink that is new has its place, is made good by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import WINDOWS, Task, job_of
from tests.runtime.streams import NaiveWatermark, expected, finish, late_rows, parquet_rows, windows_of, write_batches

import skypane as sp

FILES = late_rows(9)


@pytest.mark.parametrize("place", ["out", "late"])
def test_a_place_that_cannot_be_made_is_put_right(place: str, spark: SparkSession, tmp_path: Path):
    """A file stands where the folder is to be."""
    task = Task(str(tmp_path))
    write_batches(tmp_path / "in", FILES)
    (tmp_path / place).write_text("not mounted yet", encoding="ascii")
    with pytest.raises(sp.CheckpointError, match=f"{place}.* cannot be used"):
        finish(job_of(spark, task))
    (tmp_path / place).unlink()
    finish(job_of(spark, task))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, FILES)


def test_before_a_batch_is_committed_another_place_is_as_good(spark: SparkSession, tmp_path: Path):
    def broken(*_: object) -> None:
        raise OSError("no space left")

    write_batches(tmp_path / "in", FILES)
    task = Task(str(tmp_path))
    job = job_of(spark, task, late=broken)
    with pytest.raises(sp.SkypaneError, match="no space left"):
        finish(job)
    finish(job_of(spark, task, output=str(tmp_path / "elsewhere"), late=None))
    assert windows_of(parquet_rows(tmp_path / "elsewhere")) == expected(task.plan, FILES)


def test_a_late_sink_that_comes_later_and_fails_is_put_right(spark: SparkSession, tmp_path: Path):
    task = Task(str(tmp_path))
    write_batches(tmp_path / "in", FILES[:2])
    finish(job_of(spark, task, late=None))
    (tmp_path / "late").write_text("in the way", encoding="ascii")
    write_batches(tmp_path / "in", FILES[2:], first=2)
    with pytest.raises(sp.CheckpointError, match=r"late .* cannot be used"):
        finish(job_of(spark, task))
    (tmp_path / "late").unlink()
    finish(job_of(spark, task))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, FILES)
    naive = NaiveWatermark(WINDOWS.longest_pane)
    for batch in FILES[:2]:
        naive.take(batch)
    before = len(naive.late)
    for batch in FILES[2:]:
        naive.take(batch)
    assert 0 < before < len(naive.late)
    assert sorted(parquet_rows(tmp_path / "late")["id"].to_pylist()) == sorted(naive.late[before:])
