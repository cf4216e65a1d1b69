"""Sources that fall silent, by the clock of arrival: Spark's record of each micro-batch, which a replay reads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import finish, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.types import CheckpointError
from skypane.windows import Windows

SECOND = 1_000_000
SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "device": pa.string(), "watts": pa.float64()})
AHEAD = {"c": 3_600 * SECOND}
"""By how much the clock of a device is ahead."""
QUERY = sp.Aggregate("device", n=sp.count(), watts=sp.sum("watts"))


def batch(minute: int, devices: str) -> pa.Table:
    rows = [(minute * 60 * SECOND + AHEAD.get(name, 0), name, float(minute)) for name in devices]
    at, device, watts = zip(*rows, strict=True)
    return pa.table([pa.array(at).cast(SCHEMA.field("at").type), list(device), list(watts)], schema=SCHEMA)


# b sends nothing from the fourth minute to the seventh, and is back then
BATCHES = [batch(minute, "ac" if 4 <= minute < 8 else "abc") for minute in range(11)]


PLAN = Plan(QUERY, Windows(120 * SECOND, 120 * SECOND), "at", sp.Readiness("2 ms"), "device")


def job(spark: SparkSession, folder: Path) -> sp.Job:
    options: dict[str, Any] = {"time": "at", "progress": PLAN.progress, "source": "device"}
    return stream_job(spark, folder, QUERY, SCHEMA, window="2 minutes", **options)


def test_a_silent_source_is_left_after_two_batches_also_over_a_restart(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:6])
    seen = finish(job(spark, tmp_path))
    write_batches(tmp_path / "in", BATCHES[6:], first=6)
    seen += finish(job(spark, tmp_path))
    decisions = [decision for metrics in seen if (decision := metrics.decision("progress"))]
    active = [decision.figures["sources"] for decision in decisions]
    assert active == [3, 3, 3, 3, 3, 2, 2, 2, 3, 3, 3]
    assert [metrics.late_rows for metrics in seen] == [0] * 11, "the clock of c makes no row of the others late"

    store = DocumentStore.at(tmp_path / "checkpoint")
    clock = iter([spark_files.began(store, number) for number in range(11)])
    outcomes = list(local.run(PLAN, BATCHES, lambda: next(clock)))
    wanted = pa.concat_tables(answer.rows for outcome in outcomes for answer in outcome.answers)
    columns = ["window_start", "device", "n", "watts"]
    found = parquet_rows(tmp_path / "out")
    assert sorted(map(repr, found.select(columns).to_pylist())) == sorted(map(repr, wanted.select(columns).to_pylist()))
    assert len(found) == 8


@pytest.mark.parametrize("content", [None, b"", b"v1\n", b'v1\n{"batchWatermarkMs": 0}\n{}\n', b"v1\n{\xff\n"])
def test_a_record_without_a_time_is_named(tmp_path: Path, content: bytes | None):
    (tmp_path / "offsets").mkdir()
    if content is not None:
        (tmp_path / "offsets" / "3").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"offsets/3, a file of Spark's in the checkpoint, cannot be read"):
        spark_files.began(DocumentStore.at(tmp_path), 3)
