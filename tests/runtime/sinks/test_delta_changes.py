"""The function of docs/amended-answers.md that keeps a Delta table in step with changes of windows, as it is written there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.checkout import ROOT
from tests.rows import multiset
from tests.runtime.streams import drained, late_rows, stream_job, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime import local
from skypane.windows import Windows

PAGE = ROOT / "docs" / "amended-answers.md"
BATCHES = late_rows(7, batches=6, rows=60)
QUERY = sp.Aggregate("city", n=sp.count(), total=sp.sum("price"))
COLUMNS = ["window_start", "window_end", "city", "n", "total"]


def of_the_page() -> Callable[[DataFrame, int], None]:
    (block,) = re.findall(
        r"^(    from deltalake import CommitProperties.*?)\n\n(?=\S)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}
    exec(dedent(block), names)  # noqa: S102 - a program of the docs
    found: Callable[[DataFrame, int], None] = names["merge_changes"]
    return found


def test_a_delta_table_has_the_current_answers_though_batches_come_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    batches = [
        batch.rename_columns(["city" if name == "sensor" else name for name in batch.column_names]) for batch in BATCHES
    ]
    write_batches(tmp_path / "in", batches)
    merge_changes, seen = of_the_page(), list[str]()

    def twice(changes: DataFrame, batch_id: int) -> None:
        rows = changes.drop("action", "version").toArrow()
        if not seen:
            deltalake.DeltaTable.create("sales-table", rows.schema)
        seen.extend(row.action for row in changes.select("action").collect())
        for _ in range(2):
            merge_changes(changes, batch_id)

    drained(stream_job(
        spark, tmp_path, QUERY, batches[0].schema, window="20 seconds", progress=sp.Watermark("1 second"),
        late=sp.Amend("1 hour", changes=True), output=twice,
    ))  # fmt: skip
    assert {*seen} == {"ADD", "DEL"}, "answers are amended"
    plan = Plan(QUERY, Windows.of("20 seconds"), "ts", sp.Watermark("1 hour"))
    right = [answer.rows.select(COLUMNS) for answer in local.answers(plan, [*batches, local.Drain()])]
    table = deltalake.DeltaTable("sales-table").to_pyarrow_table().select(COLUMNS)
    assert multiset(table) == sum((multiset(rows) for rows in right), start=multiset(table.slice(0, 0)))
