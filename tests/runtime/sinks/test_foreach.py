"""Answers passed to a writer row by row, as PySpark's foreach passes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.runtime.rows_of_batches import numbers

import skypane as sp
from skypane.types import ConfigError

pytestmark = pytest.mark.spark


@dataclass
class Writer:
    """A writer that notes its calls; it refuses some batches, and fails at a row."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    refused: frozenset[int] = frozenset()
    fails_at: int | None = None

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self.calls.append(("open", partition_id, epoch_id))
        return epoch_id not in self.refused

    def process(self, row: Row) -> None:
        if row.n == self.fails_at:
            raise ValueError(f"no {row.n}")
        self.calls.append(("process", row.n))

    def close(self, error: Exception | None) -> None:
        self.calls.append(("close", str(error or "")))


def test_each_row_of_a_batch_is_passed_between_open_and_close(spark: SparkSession):
    writer = Writer()
    sp.Foreach(writer).write(spark, numbers(1, 2), 5)
    sp.Foreach(writer).write(spark, numbers(), 6)
    assert writer.calls == [("open", 0, 5), ("process", 1), ("process", 2), ("close", "")]


def test_a_batch_that_the_writer_refuses_has_no_rows(spark: SparkSession):
    writer = Writer(refused=frozenset({5}))
    sp.Foreach(writer).write(spark, numbers(1), 5)
    assert writer.calls == [("open", 0, 5), ("close", "")]


def test_an_error_of_the_writer_ends_the_batch_and_reaches_close(spark: SparkSession):
    writer = Writer(fails_at=2)
    with pytest.raises(ValueError, match="no 2"):
        sp.Foreach(writer).write(spark, numbers(1, 2, 3), 5)
    assert writer.calls == [("open", 0, 5), ("process", 1), ("close", "no 2")]


def test_a_function_is_called_with_the_rows_of_a_stream(spark: SparkSession, tmp_path: Path):
    """They are those of PySpark: times as its rows have them."""
    rows = spark.range(120).selectExpr("timestamp_seconds(id) AS ts", "id % 7 AS price")
    rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    found: list[Row] = []
    handle = sp.stream(
        spark.readStream.schema("ts timestamp, price bigint").parquet(str(tmp_path / "in")),
        sp.Aggregate(cheapest=sp.min("price"), n=sp.count()),
        time="ts",
        window="1 minute",
        output=sp.Foreach(found.append),
        checkpoint=tmp_path / "checkpoint",
    ).start(trigger="available now")
    assert handle.await_termination(300), handle.status
    handle.drain()
    assert [row.n for row in found] == [60, 60]
    (first,) = spark.sql("SELECT timestamp_seconds(0) AS at").collect()
    assert (found[0].window_start, type(found[0].window_start)) == (first["at"], datetime)


def test_what_is_no_writer_is_refused():
    with pytest.raises(
        ConfigError, match=r"writer must be a function of a row, or an object with process\(row\), got 7"
    ):
        sp.Foreach(7)
