"""What a stream keeps is what is open: it does not grow with the batches that have gone by."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.memory_driver import LENGTH, MIB, SLIDE, Sample, job_of
from tests.runtime.scenarios import lines_of
from tests.runtime.streams import SECOND, STEP

import skypane as sp
from skypane.runtime.spark.engine import ledger

MOST_PANES = (LENGTH + 60 * SECOND + STEP) // SLIDE + 2
"""Panes that a window, the latest row and a batch can hold open."""


def files(folder: Path, name: str) -> list[Path]:
    return list((folder / "checkpoint" / "skypane" / name).iterdir())


@pytest.mark.slow
def test_what_is_kept_is_bounded(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledger, "KEEP", 10)
    held: list[int] = []

    def look(batch: sp.BatchMetrics) -> None:
        assert batch.open_panes <= MOST_PANES
        assert len(files(tmp_path, "ledger")) <= 10
        assert not files(tmp_path, "rejected")
        assert len(files(tmp_path, "partials")) <= 16 * MOST_PANES
        if batch.batch_id in (11, 23, 35):
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])

    failures: list[Exception] = []

    def on_batch(batch: sp.BatchMetrics) -> None:
        try:  # what a listener raises is logged, and changes nothing
            look(batch)
        except Exception as error:
            failures.append(error)
            raise

    tracemalloc.start()
    try:
        handle = job_of(spark, tmp_path, 36).start(trigger="available now", on_batch=on_batch)
        assert handle.await_termination(300)
    finally:
        tracemalloc.stop()
    assert failures == []
    assert [batch.batch_id for batch in handle.recent_metrics(100)] == list(range(26, 36))
    assert held[2] - held[1] < MIB // 4, held


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of a process is read from /proc")
@pytest.mark.parametrize(
    "batches", [pytest.param(200, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.night)]
)
def test_memory_is_flat_over_hundreds_of_batches(batches: int, tmp_path: Path):
    """The stream runs in a separate process, so that nothing else can make its memory grow."""
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    lines = lines_of("-m", "tests.runtime.memory_driver", tmp_path, batches, cwd=ROOT, env=environment)
    samples = [Sample(**json.loads(line)) for line in lines if line.startswith("{")]
    assert [each.batch for each in samples] == list(range(batches // 10, batches + 1, batches // 10))
    settled, last = samples[2], samples[-1]
    assert last.python - settled.python < 16, samples
    assert last.java - settled.java < 16, samples
    assert len(files(tmp_path, "ledger")) == ledger.KEEP
    assert len(files(tmp_path, "partials")) <= 16 * MOST_PANES
