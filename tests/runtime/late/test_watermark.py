"""Watermark against Spark's own withWatermark: the same rows are dropped, so the same windows hold the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.parameters import slow_but
from tests.runtime.streams import SECOND, late_rows, read_batches, write_batches

import skypane as sp
from skypane.operators.advance import advance
from skypane.operators.entry.entry_rules import EntryRules
from skypane.types import Micros
from skypane.windows import Windows

START = 1_700_000_000 * SECOND
DELAY = "5 seconds"
ROWS = pa.concat_tables(late_rows(11, batches=8, rows=60, start=START))
SIZES = slow_but((160,), (60, 160))
TUMBLING, SLIDING = Windows(10 * SECOND, 10 * SECOND), Windows(20 * SECOND, 10 * SECOND)


@pytest.fixture(autouse=True)
def few_partitions(spark: SparkSession) -> Iterator[None]:
    """A state store for each of 200 partitions takes Spark a minute."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(before))


def batches_of(size: int) -> list[pa.Table]:
    """Return the stream in batches of `size` rows."""
    return [ROWS.slice(start, size) for start in range(0, ROWS.num_rows, size)]


def counting(spark: SparkSession, folder: Path, windows: Windows, name: str) -> DataStreamWriter:
    """Return what starts the query of Spark that counts the rows in windows, into a table of this name."""
    length, slide = f"{windows.length // SECOND} seconds", f"{windows.slide // SECOND} seconds"
    rows = read_batches(spark, folder, ROWS.schema).withWatermark("ts", DELAY)
    return rows.groupBy(sf.window("ts", length, slide)).count().writeStream.format("memory").queryName(name)


def found(spark: SparkSession, name: str) -> dict[Micros, int]:
    """Return the rows that Spark counted in each window, by its end."""
    rows = spark.table(name).select(sf.unix_micros("window.end").alias("end"), "count").collect()
    return {row.end: row["count"] for row in rows}


def of_skypane(
    batches: list[pa.Table], windows: Windows, policy: sp.ProgressPolicy
) -> tuple[dict[Micros, int], int, Micros]:
    """Return the same of the definition, of the windows that are closed; the rows dropped; and the punctuation."""
    gate = EntryRules(windows, "ts", ())
    state, counts = policy.init(), Counter[Micros]()
    for batch in batches:
        entry = gate.after(state.punctuation).split(batch)
        for part in entry.usable:
            for window in windows.windows_of(part.pane):
                counts[windows.bounds(window)[1]] += part.count.rows
        state = advance(policy, windows, state, entry.counts).state
    punctuation = state.punctuation
    assert punctuation is not None
    return {end: rows for end, rows in counts.items() if end <= punctuation}, state.dropped, punctuation


def backlog(spark: SparkSession, folder: Path, batches: list[pa.Table], windows: Windows) -> dict[Micros, int]:
    """Let Spark take all batches one after the other."""
    write_batches(folder, batches)
    name = f"backlog_{windows.length // SECOND}_{len(batches)}"
    query = counting(spark, folder, windows, name).trigger(availableNow=True).start()
    assert query.awaitTermination(600), "it takes too long"
    return found(spark, name)


def caught_up(spark: SparkSession, folder: Path, batches: list[pa.Table], windows: Windows) -> dict[Micros, int]:
    """Let Spark catch up after each batch: it runs once more, without data, before the next one comes."""
    write_batches(folder, batches[:1])
    name = f"caught_up_{windows.length // SECOND}_{len(batches)}"
    query = counting(spark, folder, windows, name).start()
    try:
        for number, batch in enumerate(batches):
            write_batches(folder, [batch] if number else [], first=number)
            query.processAllAvailable()
    finally:
        query.stop()
    return found(spark, name)


def upto(counts: dict[Micros, int], punctuation: Micros) -> dict[Micros, int]:
    return {end: rows for end, rows in counts.items() if end <= punctuation}


@pytest.mark.parametrize("size", SIZES)
def test_is_spark_with_a_backlog_row_for_row(size: int, spark: SparkSession, tmp_path: Path):
    batches = batches_of(size)
    counts, dropped, punctuation = of_skypane(batches, TUMBLING, sp.Watermark(DELAY, behind=True))
    assert upto(backlog(spark, tmp_path / "in", batches, TUMBLING), punctuation) == counts
    assert of_skypane(batches, TUMBLING, sp.Watermark(DELAY))[1] > dropped, "a batch behind, Spark drops fewer"


@pytest.mark.parametrize("size", SIZES)
def test_is_spark_that_has_caught_up_row_for_row(size: int, spark: SparkSession, tmp_path: Path):
    batches = batches_of(size)
    counts, dropped, punctuation = of_skypane(batches, TUMBLING, sp.Watermark(DELAY))
    assert dropped > 20
    assert caught_up(spark, tmp_path / "in", batches, TUMBLING) == counts
    assert len(counts) > 10
    assert punctuation == pc.max(ROWS["ts"].cast(pa.int64())).as_py() - 5 * SECOND


def test_where_windows_overlap_spark_counts_a_late_row_in_those_that_are_still_open(
    spark: SparkSession, tmp_path: Path
):
    batches = batches_of(60)
    counts, _, punctuation = of_skypane(batches, SLIDING, sp.Watermark(DELAY, behind=True))
    spark_counts = upto(backlog(spark, tmp_path / "in", batches, SLIDING), punctuation)
    assert spark_counts.keys() >= counts.keys()
    more = {end: rows - counts.get(end, 0) for end, rows in spark_counts.items()}
    assert min(more.values()) == 0
    assert max(more.values()) > 0
