"""The function of docs/continuous.md that keeps a Delta table in step with a continuous skyline, as it is written there."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.checkout import ROOT
from tests.runtime.continuous_streams import SCHEMA, job_of
from tests.runtime.streams import late_rows, write_batches

import skypane as sp

PAGE = ROOT / "docs" / "continuous.md"
BATCHES = late_rows(11, batches=6, rows=50)


def of_the_page() -> Callable[[DataFrame, int], None]:
    """Return the function of the page."""
    (block,) = re.findall(r"^(    from deltalake import .*?)\n\n(?=\S)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(dedent(block), names)  # noqa: S102 - a program of the docs
    found: Callable[[DataFrame, int], None] = names["merge_front"]
    return found


def run(spark: SparkSession, folder: Path, output: Any) -> sp.StreamHandle:
    """Run the job over each half of the batches, and drain it."""
    for first in (0, 3):
        write_batches(folder / "in", BATCHES[first : first + 3], first=first)
        handle = job_of(spark, folder, output=output).start(trigger="available now")
        assert handle.await_termination(300), handle.status
    handle.drain()
    return handle


def test_a_delta_table_follows_the_front_though_batches_come_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    columns = pa.schema([*SCHEMA, ("since", pa.timestamp("us", "UTC"))])
    deltalake.DeltaTable.create("front-table", columns)
    merge_front = of_the_page()
    seen: list[int] = []
    entered: dict[int, datetime] = {}
    left: set[int] = set()

    def twice(updates: DataFrame, batch_id: int) -> None:
        seen.append(batch_id)
        for row in updates.select("id", "action", "action_time").toArrow().to_pylist():
            if row["action"] == "ADD":
                entered[row["id"]] = row["action_time"]
            elif row["id"] in entered:
                left.add(row["id"])
        for _ in range(2):
            merge_front(updates, batch_id)

    handle = run(spark, tmp_path, twice)
    table = deltalake.DeltaTable("front-table")
    kept, front = table.to_pyarrow_table(), handle.front()
    assert front.num_rows > 0
    assert left, "rows that had entered are deleted"
    rows_of_front = front.select(SCHEMA.names).sort_by("id").to_pylist()
    assert kept.select(SCHEMA.names).sort_by("id").to_pylist() == rows_of_front
    since = {row["id"]: row["since"] for row in kept.to_pylist()}
    assert since == {id_: entered[id_] for id_ in since}
    assert table.transaction_version("front") == max(seen)
    assert table.version() <= len(seen)


def test_the_last_updates_of_a_folder_are_the_front(spark: SparkSession, tmp_path: Path):
    handle = run(spark, tmp_path, tmp_path / "updates")
    updates = spark.read.parquet(str(tmp_path / "updates"))
    last = sf.max_by(sf.struct("*"), sf.struct("action_time", "action")).alias("last")
    current = updates.groupBy("id").agg(last).select("last.*").where("action = 'ADD'")
    front = handle.front()
    assert sorted(row.id for row in current.collect()) == sorted(front["id"].to_pylist())
    assert front.num_rows > 0
