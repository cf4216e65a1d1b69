"""What a worker keeps: its garbage collector is called by PySpark after each task, its memory is Arrow's."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skypane as sp
from skypane.runtime.spark.machine.worker_memory import keep_loaded


def test_what_a_worker_has_loaded_is_not_looked_through_after_each_task_and_it_keeps_the_memory_of_its_tables(
    spark: SparkSession,
):
    def kept(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        allocator = pa.default_memory_pool().backend_name
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()], "allocator": [allocator]})

    rows = spark.range(0, 100, 1, 2).selectExpr("id AS a", "-id AS b")
    assert sp.skyline(rows, "a MIN, b MIN").count() == 100
    found = spark.range(0, 2, 1, 2).mapInArrow(kept, "frozen long, allocator string").collect()
    assert max(row.frozen for row in found) > 50_000, "numba and pyarrow alone are more objects"
    assert "system" in {row.allocator for row in found}


def test_elsewhere_than_in_a_worker_nothing_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("this process is not ours"))
    keep_loaded(int)
