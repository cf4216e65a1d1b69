"""Spark's observed metrics, which listeners get with the progress of a query: those of its rows, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.runtime.streams import late_rows, read_batches, write_batches

import skypane as sp

LIMIT = 300
TABLES = late_rows(7, batches=4)


def run(spark: SparkSession, folder: Path, output: Any) -> tuple[sp.StreamHandle, list[dict[str, Any]]]:
    """Run a query whose rows are observed before it; return its handle, and what its batches' progress has."""
    write_batches(folder / "in", TABLES)
    rows = read_batches(spark, folder / "in", TABLES[0].schema)
    observed = rows.observe("arrived", sf.count(sf.lit(1)).alias("rows"), sf.sum("id").alias("ids"))
    job = sp.stream(
        observed,
        "price MIN, rating MAX",
        time="ts",
        window="50 seconds",
        checkpoint=folder / "checkpoint",
        output=output,
    )
    handle = job.start(trigger="available now")
    assert handle.await_termination(LIMIT)
    return handle, [one.observedMetrics for one in handle.query.recentProgress if one.numInputRows]


def test_what_is_observed_before_the_query_is_in_its_progress(spark: SparkSession, tmp_path: Path):
    """Once for each batch, of all its rows: the query reads them once."""
    handle, seen = run(spark, tmp_path, sp.Memory())
    assert [one["arrived"].rows for one in seen] == [one.rows for one in handle.recent_metrics()]
    assert [one["arrived"].ids for one in seen] == [pc.sum(table["id"]).as_py() for table in TABLES]


def test_what_a_sink_observes_is_not_in_the_progress(spark: SparkSession, tmp_path: Path):
    """A batch is a plan of its own, and progress has what the plan of the stream observes."""
    written: list[int] = []

    def sink(rows: DataFrame, batch_id: int) -> None:
        rows.observe("written", sf.count(sf.lit(1)).alias("rows")).collect()
        written.append(batch_id)

    _, seen = run(spark, tmp_path, sink)
    assert written
    assert [list(one) for one in seen] == [["arrived"]] * len(TABLES)
