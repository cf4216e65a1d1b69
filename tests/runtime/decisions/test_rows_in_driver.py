"""Rows that Spark sends to the driver: all of them, or none if they may be too many."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import expected, finish, late_rows, skylines_of, windows_of

import skypane as sp
from skypane.control.lift_placement import LiftPlacement
from skypane.runtime.spark.engine import rows_in_driver
from skypane.runtime.spark.engine.rows_in_driver import MOST, few_rows

SMALL_RESULTS = """
import skypane as sp
from skypane.runtime.spark.engine.rows_in_driver import few_rows
spark = sp.session("local[1]", conf={"spark.driver.maxResultSize": "1m"})
for rows in (10, 1000):
    table = few_rows(spark.range(rows).selectExpr("repeat('x', 10000) AS text"))
    print(rows, None if table is None else table.num_rows)
"""


@pytest.mark.parametrize(("rows", "partitions"), [(0, 1), (1, 3), (MOST - 1, 1), (MOST - 1, 4)])
def test_few_rows_come_whole(rows: int, partitions: int, spark: SparkSession):
    table = few_rows(spark.range(0, rows, 1, partitions))
    assert table is not None
    assert sorted(table["id"].to_pylist()) == list(range(rows))


@pytest.mark.parametrize(("rows", "partitions"), [(MOST, 1), (10 * MOST, 1), (10 * MOST, 3)])
def test_of_too_many_rows_none_come(rows: int, partitions: int, spark: SparkSession):
    assert few_rows(spark.range(0, rows, 1, partitions)) is None


@pytest.mark.slow
def test_of_too_many_bytes_none_come():
    found = subprocess.run([sys.executable, "-c", SMALL_RESULTS], capture_output=True, text=True, check=False)
    assert found.stdout.splitlines() == ["10 10", "1000 None"], found.stderr[-3_000:]


def test_workers_lift_a_batch_that_is_larger_than_expected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    batches, memory = [*late_rows(4, batches=3), *late_rows(5, batches=2, rows=400, start=200_000_000)], sp.Memory()
    monkeypatch.setattr(rows_in_driver, "MOST", 100)
    plan, job = skylines_of(spark, tmp_path, batches, memory)
    with caplog.at_level(logging.INFO, rows_in_driver.__name__):
        seen = finish(replace(job, settings=replace(job.settings, lift=LiftPlacement("driver"))))
    assert [batch.rows for batch in seen] == [batch.num_rows for batch in batches]
    again = "a batch has more rows than the driver takes (100 rows and more): workers read it again"
    assert caplog.messages.count(again) == 2
    assert windows_of(memory.table()) == expected(plan, batches)
