"""What a stream keeps is what is open: it does not grow with the batches that have gone by."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import SECOND, STEP, late_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime.spark.engine import ledger
from skypane.types import Length

MIB = 1 << 20
LENGTH, SLIDE = 60 * SECOND, 20 * SECOND
MOST_PANES = (LENGTH + 60 * SECOND + STEP) // SLIDE + 2
"""Panes that a window, the latest row and a batch can hold open."""


def job_of(spark: SparkSession, folder: Path, batches: int) -> sp.Job:
    stream = late_rows(1, batches=batches)
    write_batches(folder / "in", stream)
    return sp.stream(
        read_batches(spark, folder / "in", stream[0].schema),
        sp.Skyline(sp.low("price") * sp.high("rating"), by="sensor"),
        time="ts",
        window=Length(LENGTH),
        slide=Length(SLIDE),
        checkpoint=folder / "checkpoint",
        output=folder / "out",
        late=folder / "late",
    )


def files(folder: Path, name: str) -> list[Path]:
    return list((folder / "checkpoint" / "skypane" / name).iterdir())


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


@dataclass(frozen=True)
class Sample:
    """Memory after a batch, in MiB: of this process, and live in the virtual machine's heap."""

    batch: int
    python: float
    java: float


def sample(spark: SparkSession, batch: int) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    used = runtime.totalMemory() - runtime.freeMemory()
    return Sample(batch, round(pages * os.sysconf("SC_PAGE_SIZE") / MIB, 1), round(used / MIB, 1))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of a process is read from /proc")
def test_memory_is_flat_over_a_thousand_batches(spark: SparkSession, tmp_path: Path):
    samples: list[Sample] = []

    def look(batch: sp.BatchMetrics) -> None:
        if batch.batch_id % 100 == 99:
            samples.append(sample(spark, batch.batch_id + 1))
            print(json.dumps(asdict(samples[-1])), flush=True)

    handle = job_of(spark, tmp_path, 1_000).start(trigger="available now", on_batch=look)
    assert handle.await_termination(3_000)
    assert [each.batch for each in samples] == list(range(100, 1_001, 100))
    settled, last = samples[2], samples[-1]
    assert last.python - settled.python < 16, samples
    assert last.java - settled.java < 16, samples
    assert len(files(tmp_path, "ledger")) == ledger.KEEP
    assert len(files(tmp_path, "partials")) <= 16 * MOST_PANES
