"""The first batch of a backlog on Spark: its files are read in the order in which they were written, whatever tasks read them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import finish

import skypane as sp

SECOND, ROWS = 1_000_000, 3_000
WRITTEN = 1_700_000_000
"""When the first file was written, in seconds; each further one a minute later."""


def late(begin: int, rows: int = ROWS) -> list[int]:
    """Ten rows a second, a third of them up to twenty seconds late."""
    rng = np.random.default_rng(begin)
    behind = np.where(rng.random(rows) < 1 / 3, rng.uniform(0, 20, rows), 0.0)
    times: list[int] = (((begin + np.arange(rows)) / 10 + 1_000 - behind) * SECOND).astype(np.int64).tolist()
    return times


def write(folder: Path, parts: Sequence[Sequence[int]], first: int = 0) -> None:
    """Write files whose names are in the reverse order of their times; some are larger than others."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, times in enumerate(parts, first):
        path, draft = folder / f"é {99 - number}.parquet", folder / f".{number}"
        rows = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "text": ["x" * (number % 3) * 100] * len(times)}
        pq.write_table(pa.table(rows), draft)
        os.utime(draft, (WRITTEN + 60 * number,) * 2)
        draft.rename(path)


def run(
    spark: SparkSession, folder: Path, policy: sp.ProgressPolicy, files: int | None = None
) -> list[sp.BatchMetrics]:
    reader = spark.readStream.schema("ts timestamp, text string")
    reader = reader if files is None else reader.option("maxFilesPerTrigger", files)
    job = sp.stream(
        reader.parquet(str(folder / "in")), sp.Aggregate(rows=sp.count(), longest=sp.max("text")), time="ts",
        window="10 seconds", progress=policy, checkpoint=folder / "checkpoint", output=folder / "out",
    )  # fmt: skip
    return finish(job)


def longest_delay(times: Sequence[int]) -> int:
    return max(newest - time for newest, time in zip(accumulate(times, max), times, strict=True))


@pytest.mark.parametrize("files", [None, 2], ids=["all at once", "two at a time"])
def test_a_backlog_of_files_in_order_loses_nothing_and_waits_no_longer_than_its_rows_are_late(
    files: int | None, spark: SparkSession, tmp_path: Path
):
    parts = [late(number * ROWS) for number in range(6)]
    write(tmp_path / "in", parts)
    metrics = run(spark, tmp_path, sp.KSlack(), files)
    assert metrics[-1].slack == longest_delay([time for part in parts for time in part])
    write(tmp_path / "in", [late(6 * ROWS)], first=6)
    metrics += run(spark, tmp_path, sp.KSlack(), files)
    assert len(metrics) == (2 if files is None else 4)
    assert all(metrics.windows > 20 for metrics in metrics)
    assert metrics[-1].totals["late"] == 0


def test_files_that_were_written_in_another_order_than_their_rows_count_as_disorder(
    spark: SparkSession, tmp_path: Path
):
    parts = [late(number * ROWS) for number in (0, 2, 1, 3)]
    write(tmp_path / "in", parts)
    (metrics,) = run(spark, tmp_path, sp.KSlack())
    assert metrics.slack == longest_delay([time for part in parts for time in part]) > 300 * SECOND
    write(tmp_path / "in", [late(ROWS * number) for number in (5, 4)], first=4)
    metrics = run(spark, tmp_path, sp.KSlack(), 1)[-1]
    assert metrics.totals["late"] == 0


def test_a_budget_is_kept_from_the_first_batch_on(spark: SparkSession, tmp_path: Path):
    write(tmp_path / "in", [late(number * 500, 500) for number in range(8)])
    metrics = run(spark, tmp_path, sp.AqKSlack(0.01), 1)
    reasons = [decision.because for batch in metrics if (decision := batch.decision("progress"))]
    assert reasons[0] == "learning: 500 of 1,000 rows by which the budget is judged"
    assert metrics[-1].totals["late"] <= 0.012 * metrics[-1].totals["read"]
    assert metrics[-1].windows > 0


def test_files_that_are_joined_with_files_have_an_order_that_is_not_known(spark: SparkSession, tmp_path: Path):
    parts = [late(number * ROWS) for number in range(3)]
    write(tmp_path / "in", parts)
    pq.write_table(pa.table({"text": ["", "x" * 100, "x" * 200], "name": ["a", "b", "c"]}), tmp_path / "names.parquet")
    files = spark.readStream.schema("ts timestamp, text string").option("maxFilesPerTrigger", 2)
    job = sp.stream(
        files.parquet(str(tmp_path / "in")).join(spark.read.parquet(str(tmp_path / "names.parquet")), "text"),
        sp.Aggregate("name", rows=sp.count()), time="ts", window="10 seconds", progress=sp.KSlack(),
        checkpoint=tmp_path / "checkpoint", output=tmp_path / "out",
    )  # fmt: skip
    first, second = finish(job)
    assert (first.windows, first.totals["read"]) == (0, 2 * ROWS)
    assert second.windows > 20
    assert second.totals["late"] == 0
