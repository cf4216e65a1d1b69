"""Drivers are killed while they write stays: each row is in each of its windows once, however batches are cut again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import CRASHES, Task, job_of
from tests.runtime.streams import answers, finish, late_rows, parquet_rows, write_batches
from tests.runtime.test_recovery import Drivers, Stream, in_a_drain, kill_during_drains, kill_itself
from tests.runtime.test_window_division import ON_SPARK, AnyDivision

import skypane as sp
from skypane.operators.stay_columns import expanded
from skypane.runtime import local
from skypane.runtime.spark.engine import window_program


@pytest.fixture
def drivers(spark: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    del spark  # only one session at a time need start at leisure
    started = Drivers(tmp_path)
    yield started
    started.close()


def task_in(folder: Path, crash: str | None = None) -> Task:
    return Task(str(folder), crash, stays=True)


def kill_at(crashes: Sequence[str], drivers: Drivers, spark: SparkSession, folder: Path) -> None:
    files = late_rows(33, batches=4 + 2 * len(crashes), rows=90)
    write_batches(folder / "in", files[:4])
    stream = Stream(folder, files, write=False)
    finish(job_of(spark, task_in(folder)))
    write_batches(folder / "in", files[4:], first=4)
    for number, crash in enumerate(crashes, 1):
        kill_itself(drivers, task_in(folder, crash), len(crashes) - number)
    job = job_of(spark, task_in(folder), workers=sp.WorkerOptions(wlq_workers=3))
    seen = finish(replace(job, settings=replace(job.settings, costs=ON_SPARK)))
    assert "spark" in {metrics.wlq_where for metrics in seen}, "not as the drivers have done"
    assert_each_once(folder, stream.batches())


def assert_each_once(folder: Path, events: Sequence[local.Event]) -> None:
    """The stays of the output stand for the answers of the definition, in fewer rows."""
    written, wanted = parquet_rows(folder / "out"), answers(task_in(folder).plan, events)
    assert bag(expanded(written).select(wanted.column_names)) == bag(wanted)
    assert written.num_rows < wanted.num_rows / 2


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("crash", ["after the sink", "before the commit"])
def test_a_batch_that_comes_again_may_be_cut_otherwise(
    crash: str, drivers: Drivers, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first driver answers the windows itself, the next one has tasks that answer them."""
    monkeypatch.setattr(window_program, "WindowDivision", AnyDivision)
    kill_at([crash], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at([*CRASHES], drivers, spark, tmp_path)


@pytest.mark.slow
def test_kills_during_a_drain(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """Each driver takes a batch, and is killed while it drains; the next one finishes that first."""
    task, crashes = task_in(tmp_path), in_a_drain(CRASHES)
    # A drain ends all windows, which are longer than a file: most rows of the next one would be late.
    files = late_rows(33, batches=4 * len(crashes), rows=90)[::4]
    events = kill_during_drains(drivers, task, crashes, files)
    finish(job_of(spark, task))
    assert_each_once(tmp_path, events)
