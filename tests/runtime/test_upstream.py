"""Spark's own operators before a query: a query over their rows answers as over the same rows of a table, also after a restart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as sf
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.streams import ended, parquet_rows, read_batches, write_batches

import skypane as sp

START = datetime(2026, 3, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("shop", pa.string()), ("price", pa.float64())]
)
CLOSED = START + timedelta(minutes=73)
"""Start of the last minute that ends 5 minutes before the last row."""
QUERY = sp.Aggregate("shop", n=sp.count(), total=sp.sum("price"))


def batch(number: int) -> pa.Table:
    """40 rows of ten minutes; every fourth one is the row before it once more."""
    rows = [row - (row % 4 == 3) for row in range(40)]
    minutes = [number * 10 + row / 4 for row in rows]
    return pa.table(
        {
            "ts": pa.array([START + timedelta(minutes=minute) for minute in minutes], SCHEMA.field("ts").type),
            "id": [number * 40 + row for row in rows],
            "shop": [f"shop {row % 3}" for row in rows],
            "price": [float(row) for row in rows],
        },
        schema=SCHEMA,
    )


def cities(rows: DataFrame) -> DataFrame:
    """Join a static table: its `city` replaces `shop`, and shops that it lacks are gone."""
    known = rows.sparkSession.createDataFrame([("shop 0", "Pisa"), ("shop 1", "Lucca")], "shop string, city string")
    return rows.join(known, "shop").select("ts", "id", sf.col("city").alias("shop"), "price")


def distinct(rows: DataFrame) -> DataFrame:
    """Keep one row of each number."""
    if not rows.isStreaming:
        return rows.dropDuplicates(["id"])
    return rows.withWatermark("ts", "1 hour").dropDuplicatesWithinWatermark(["id"])


def distinct_times(rows: DataFrame) -> DataFrame:
    """Keep one row of each number and time: Spark forgets a row once its watermark has passed the time."""
    return rows.withWatermark("ts", "1 hour").dropDuplicates(["id", "ts"])


def pairs(rows: DataFrame) -> DataFrame:
    """Join the stream with itself: each row with the one that has twice its number."""
    left = rows.withWatermark("ts", "1 hour")
    right = rows.select(sf.col("id").alias("other"), sf.col("ts").alias("then")).withWatermark("then", "1 hour")
    near = sf.expr("other = 2 * id AND then BETWEEN ts - INTERVAL 1 HOUR AND ts + INTERVAL 1 HOUR")
    return left.join(right, near).select("ts", "id", "shop", "price")


def minutes(rows: DataFrame) -> DataFrame:
    """Aggregate each minute and shop by Spark's own windows: what its watermark has closed are the rows of the query."""
    grouped = rows.withWatermark("ts", "5 minutes").groupBy(sf.window("ts", "1 minute"), "shop")
    found = grouped.agg(sf.count("*").alias("id"), sf.sum("price").alias("price"))
    named = found.select(sf.col("window.start").alias("ts"), "id", "shop", "price")
    return named if rows.isStreaming else named.where(named.ts <= CLOSED)


WINDOWS: dict[str, Any] = {"time": "ts", "window": "10 minutes", "slide": "5 minutes"}


def job(before: Callable[[DataFrame], DataFrame], spark: SparkSession, folder: Path) -> sp.Job:
    """Return the job over what an operator makes of the rows in `folder`/in."""
    rows = before(read_batches(spark, folder / "in", SCHEMA))
    places: dict[str, Any] = {"checkpoint": folder / "checkpoint", "output": folder / "out"}
    return sp.stream(rows, QUERY, progress=sp.Watermark("1 hour"), **WINDOWS, **places)


def late_minutes(rows: DataFrame) -> DataFrame:
    """Aggregate by Spark's windows, and set a watermark that nothing uses on the minutes."""
    return minutes(rows).withWatermark("ts", "2 hours")


def late_cities(rows: DataFrame) -> DataFrame:
    """Set a watermark that nothing uses, as a join with a static table has no state."""
    return cities(rows.withWatermark("ts", "10 minutes")).where("price > 1")


@pytest.mark.parametrize(
    ("before", "delays"),
    [
        (lambda rows: rows, []),
        (lambda rows: rows.withWatermark("ts", "1 hour"), ["1 hours"]),
        (late_cities, ["10 minutes"]),
        (late_minutes, ["2 hours"]),
        (distinct, []),
        (distinct_times, []),
        (pairs, []),
        (minutes, []),
    ],
)
def test_a_watermark_that_no_operator_uses_is_reported(
    before: Callable[[DataFrame], DataFrame],
    delays: list[str],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    write_batches(tmp_path / "in", [])
    job(before, spark, tmp_path)
    found = [record.getMessage() for record in caplog.records if "withWatermark" in record.getMessage()]
    assert found == [
        f"withWatermark(..., '{delay}') has no effect here, as no operator of Spark uses it before the query: write "
        f"progress=sp.Watermark('{delay}') instead"
        for delay in delays
    ]
    assert all(sp.Watermark(delay).delay for delay in delays)


@pytest.mark.parametrize(
    "before",
    [minutes, *(pytest.param(one, marks=pytest.mark.slow) for one in (pairs, cities, distinct, distinct_times))],
)
def test_a_query_after_an_operator_of_spark_answers_as_over_a_table(
    spark: SparkSession, tmp_path: Path, before: Callable[[DataFrame], DataFrame]
):
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    write_batches(tmp_path / "in", [batch(number) for number in range(4)])
    ended(job(before, spark, tmp_path))
    write_batches(tmp_path / "in", [batch(number) for number in range(4, 8)], first=4)
    ended(job(before, spark, tmp_path)).drain()
    table = spark.read.schema(read_batches(spark, tmp_path / "in", SCHEMA).schema).parquet(str(tmp_path / "in"))
    wanted = sp.ask(before(table), QUERY, **WINDOWS).toArrow()
    columns = ["window_start", "shop", "n", "total"]
    found = parquet_rows(tmp_path / "out")
    assert sorted(map(repr, found.select(columns).to_pylist())) == sorted(map(repr, wanted.select(columns).to_pylist()))
    assert len(found) > 10


def test_a_damaged_state_of_an_operator_of_spark_is_named(spark: SparkSession, tmp_path: Path):
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    write_batches(tmp_path / "in", [batch(0)])
    ended(job(distinct, spark, tmp_path))
    write_batches(tmp_path / "in", [batch(1)], first=1)
    for delta in (tmp_path / "checkpoint" / "state").rglob("[0-9]*.delta"):
        content = bytearray(delta.read_bytes())
        content[len(content) // 2] ^= 1
        delta.write_bytes(content)
    with pytest.raises(sp.SkypaneError, match="Spark cannot read the state of its operators before the query"):
        ended(job(distinct, spark, tmp_path))
