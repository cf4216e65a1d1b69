"""A start that fails before the first batch, or before a sink that is new has its place, is made good by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.checkout import PYTHONPATH, ROOT
from tests.nature.weather import Weather
from tests.runtime.driver import WINDOWS, Task, job_of
from tests.runtime.streams import (
    NaiveWatermark,
    expected,
    finish,
    late_rows,
    leave_unfinished,
    parquet_rows,
    windows_of,
    write_batches,
)

import skypane as sp

FILES = late_rows(9)
START = """
import sys
import skypane as sp
from tests.runtime.driver import Task, job_of
job_of(sp.session("local[1]"), Task(sys.argv[1])).start().await_termination()
"""


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


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_what_spark_has_left_of_its_first_batch_is_removed(log: str, spark: SparkSession, tmp_path: Path):
    """Spark refuses to begin its first batch beside it, at each start."""
    task = Task(str(tmp_path))
    write_batches(tmp_path / "in", FILES)
    leave_unfinished(tmp_path / "checkpoint", log)
    finish(job_of(spark, task))
    assert not [path for path in (tmp_path / "checkpoint" / log).iterdir() if ".tmp" in path.name]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, FILES)


@pytest.mark.slow
def test_a_kill_while_spark_writes_its_first_offsets_is_made_good(spark: SparkSession, tmp_path: Path):
    weather = Weather.made(tmp_path)
    if weather is None:
        pytest.skip("needs a C compiler, which makes renames slow")
    write_batches(tmp_path / "in", FILES)
    checkpoint, environment = tmp_path / "checkpoint", os.environ | weather.environment | {"PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-c", START, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as driver:
        try:
            while not checkpoint.exists():
                assert driver.poll() is None
            weather.be(slow=1)
            while not [*checkpoint.glob("offsets/*")]:
                assert driver.poll() is None
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
    assert not (checkpoint / "offsets" / "0").exists()
    task = Task(str(tmp_path))
    finish(job_of(spark, task))
    both = pa.concat_tables(FILES[:2])  # Spark has noted the first file, and takes the next along
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, [both, *FILES[2:]])
