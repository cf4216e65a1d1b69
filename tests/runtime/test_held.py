"""Rows far ahead of the rest, in Spark's streams: held until the stream has followed them, or has gone on without them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import SECOND, expected, finish, parquet_rows, read_batches, windows_of, write_batches

import skypane as sp
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.store import Store
from skypane.windows import Windows

START = 1_700_000_000 * SECOND
WEEK = 7 * 86_400 * SECOND
WINDOWS = Windows(20 * SECOND, 10 * SECOND)


def plan(policy: sp.ProgressPolicy) -> Plan:
    return Plan(Skyline(sp.low("price") * sp.high("rating"), ()), WINDOWS, "ts", policy)


def rows(first: int, times: list[int]) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(range(first, first + len(times))),
            "ts": pa.array([START + time for time in times], pa.timestamp("us", "UTC")),
            "price": pa.array(rng.integers(0, 6, len(times)).astype(np.float64)),
            "rating": pa.array(rng.integers(0, 6, len(times)).astype(np.float64)),
        }
    )


def seconds(first: int, last: int) -> list[int]:
    return [second * SECOND for second in range(first, last)]


def job(spark: SparkSession, folder: Path, asked: Plan, schema: pa.Schema, **options: Any) -> sp.Job:
    return sp.stream(
        read_batches(spark, folder / "in", schema),
        asked.query,
        time="ts",
        window="20 seconds",
        slide="10 seconds",
        progress=asked.progress,
        checkpoint=folder / "checkpoint",
        output=folder / "out",
        late=folder / "late",
        **options,
    )


def run_with_a_restart_after_each_batch(
    spark: SparkSession, folder: Path, asked: Plan, batches: list[pa.Table]
) -> list[sp.BatchMetrics]:
    """Each batch is run by an engine of its own: what it knows of those before, it has read from the ledger."""
    metrics: list[sp.BatchMetrics] = []
    for number, batch in enumerate(batches):
        write_batches(folder / "in", [batch], first=number)
        metrics += finish(job(spark, folder, asked, batches[0].schema))
    return metrics


def rejected(folder: Path) -> Counter[tuple[int, str]]:
    if not any((folder / "late").glob("*.parquet")):
        return Counter()
    table = parquet_rows(folder / "late")
    return Counter(zip(table["id"].to_pylist(), table["reason"].to_pylist(), strict=True))


def partials(folder: Path) -> set[str]:
    return {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()}


def test_a_stream_that_pauses_for_a_week_loses_no_row(spark: SparkSession, tmp_path: Path):
    week = WEEK // SECOND
    batches = [
        rows(0, seconds(0, 60)),
        rows(100, seconds(60, 100) + seconds(week, week + 10)),  # more rows before the pause than after it
        rows(200, seconds(week + 5, week + 40)),
        rows(300, seconds(week + 40, week + 80)),
    ]
    asked = plan(sp.KSlack())
    metrics = run_with_a_restart_after_each_batch(spark, tmp_path, asked, batches)
    assert [batch.held_rows for batch in metrics] == [0, 10, 0, 0]
    assert metrics[1].newest == START + 99 * SECOND
    assert metrics[-1].seen_rows == sum(batch.num_rows for batch in batches)
    assert rejected(tmp_path) == Counter()
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(asked, batches)


def test_clocks_that_are_wrong_are_quarantined_with_their_rows_when_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path
):
    wrong = [52 * WEEK, 52 * WEEK + SECOND, 99 * WEEK]
    batches = [
        rows(0, seconds(0, 40)),
        rows(100, [*seconds(40, 60), *wrong]),
        rows(200, [*seconds(60, 80), wrong[0]]),
        rows(300, seconds(80, 120)),
        rows(400, seconds(120, 140)),
    ]
    asked = plan(sp.KSlack(patience=30))
    metrics = run_with_a_restart_after_each_batch(spark, tmp_path, asked, batches)
    # 20 rows have come since with the third batch, 60 with the fourth.
    assert [batch.held_rows for batch in metrics] == [0, 3, 4, 0, 0]
    assert [batch.quarantined for batch in metrics] == [{}, {}, {}, {"future": 4}, {}]
    assert rejected(tmp_path) == Counter((row, "future") for row in (120, 121, 122, 220))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(asked, batches)
    assert metrics[-1].newest == START + 139 * SECOND


def test_what_is_held_lies_in_the_checkpoint_and_is_removed_with_its_end(spark: SparkSession, tmp_path: Path):
    asked = plan(sp.KSlack(patience=10))
    batches = [rows(0, seconds(0, 40)), rows(100, [*seconds(40, 60), WEEK]), rows(200, seconds(60, 80))]
    named = []
    for number, batch in enumerate(batches):
        write_batches(tmp_path / "in", [batch], first=number)
        finish(job(spark, tmp_path, asked, batch.schema))
        manifest = Ledger(Store.at(str(tmp_path / "checkpoint")).child("skypane")).latest()
        assert manifest is not None
        named.append({ref[0] for ref in json.loads(json.dumps(manifest.operator))["ahead"]})
        assert named[-1] <= partials(tmp_path)
    assert [len(files) for files in named] == [0, 1, 0]
    assert not named[1] & partials(tmp_path)


@pytest.mark.parametrize("policy", [sp.AqKSlack(0.05), sp.Watermark("20 seconds")], ids=lambda law: type(law).__name__)
def test_each_batch_says_in_a_line_why_it_waits_and_for_whom(
    policy: sp.ProgressPolicy, spark: SparkSession, tmp_path: Path
):
    times = [seconds(0, 40), seconds(20, 60)]
    meters = [["meter 4"] * 40, ["meter 3"] * 10 + ["meter 4"] * 30]
    batches = [
        rows(100 * number, drawn).append_column("meter", [names])
        for number, (drawn, names) in enumerate(zip(times, meters, strict=True))
    ]
    write_batches(tmp_path / "in", batches)
    metrics = finish(job(spark, tmp_path, plan(policy), batches[0].schema, source="meter"))
    lines = [decision.because for batch in metrics if (decision := batch.decision("progress"))]
    assert len(lines) == len(metrics)
    assert all(lines)
    last = metrics[-1].decision("progress")
    assert last is not None
    if isinstance(policy, sp.AqKSlack):
        assert "the longest delay seen" in lines[-1]
        assert lines[-1].endswith("; most late rows are from meter 3")
        assert metrics[-1].late_by_source == {"meter 3": 10}
        assert last.figures["credit"] == pytest.approx(0.05 * 80 - 0.05 * 40 - metrics[-1].dropped_rows)
