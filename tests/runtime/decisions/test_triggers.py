"""When batches begin, in the words of the package and in those of PySpark's trigger()."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import expected, late_rows, skylines_of, windows_of

import skypane as sp
from skypane.runtime.spark.triggers import pace_of, paced, trigger_of

NOW: dict[str, Any] = {"availableNow": True}
TEN: dict[str, Any] = {"processingTime": "10000 milliseconds"}


@pytest.mark.parametrize(
    ("given", "wanted", "pace"),
    [
        ((None, None, None), None, 0.0),
        (("auto", None, None), None, 0.0),
        (("available now", None, None), NOW, math.inf),
        (("Available_Now", None, None), NOW, math.inf),
        (("availableNow", None, None), NOW, math.inf),
        ((None, None, True), NOW, math.inf),
        (("10 seconds", None, None), TEN, 10.0),
        ((None, "10 seconds", None), TEN, 10.0),
        ((None, "0 seconds", None), {"processingTime": "0 milliseconds"}, 0.0),
        ((None, "1 minute", None), {"processingTime": "60000 milliseconds"}, 60.0),
    ],
)
def test_a_trigger_means_the_same_in_both_spellings(given: Any, wanted: Any, pace: float):
    assert trigger_of(*given) == wanted
    assert pace_of(wanted) == pace
    assert (paced(wanted) is None) == (wanted is not None)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("5 seconds", None, True), "trigger='5 seconds' and availableNow=True each say when batches begin: give one"),
        ((None, "5 seconds", True), "processingTime='5 seconds' and availableNow=True each say"),
        (("5 seconds", "5 seconds", None), "trigger='5 seconds' and processingTime='5 seconds' each say"),
        ((None, None, False), "availableNow must be True, got False; leave it out to run until stopped"),
        ((None, None, "yes"), "availableNow must be True, got 'yes'"),
        ((None, "sometimes", None), r"processingTime: cannot read 'sometimes'"),
        ((None, "available now", None), r"processingTime: cannot read 'available now'"),
        ((None, "-1 second", None), "processingTime must not be negative, got '-1 second'"),
        ((None, 5, None), "processingTime must be a text such as '5 seconds', got 5"),
        ((5, None, None), "trigger must be a text such as '5 seconds' or 'auto' or 'available now', got 5"),
    ],
)
def test_a_trigger_that_is_given_twice_or_cannot_be_read_is_refused(given: Any, complaint: str):
    with pytest.raises(sp.ConfigError, match=complaint):
        trigger_of(*given)


@pytest.mark.parametrize("given", [NOW, {"processingTime": "0 seconds"}])
def test_a_stream_runs_as_pyspark_spells_it(given: dict[str, Any], spark: SparkSession, tmp_path: Path):
    batches, memory = late_rows(4, batches=3), sp.Memory()
    plan, job = skylines_of(spark, tmp_path, batches, memory)
    handles: list[sp.StreamHandle] = []
    seen: list[int] = []
    started = threading.Event()

    def stop_at_the_last(batch: sp.BatchMetrics) -> None:
        seen.append(batch.batch_id)
        if batch.batch_id == len(batches) - 1 and "processingTime" in given:
            assert started.wait(60)
            handles[0].stop()

    with pytest.raises(sp.ConfigError, match="each say when batches begin"):
        job.start(trigger="1 second", **given)
    assert not (tmp_path / "checkpoint").exists()
    handles.append(job.start(on_batch=stop_at_the_last, **given))
    started.set()
    assert handles[0].await_termination(600), handles[0].status
    assert seen == list(range(len(batches)))
    assert windows_of(memory.table()) == expected(plan, batches)
