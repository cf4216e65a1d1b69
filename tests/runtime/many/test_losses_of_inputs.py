"""Losses that only real sources have, on real streams: rows that a source deleted, texts instead of numbers, a slow trigger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.runtime.streams import ended

import skypane as sp

SCHEMA = "ts timestamp, price double"


def line(at: int, price: object) -> str:
    return json.dumps({"ts": f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z", "price": price}) + "\n"


def job_of(rows: Any, folder: Path, **options: Any) -> sp.Job:
    given: dict[str, Any] = {"window": "10 seconds", "progress": sp.Watermark("5 seconds"), "output": folder / "out"}
    return sp.stream(rows, "price MIN", time="ts", checkpoint=folder / "checkpoint", **given | options)


def run_until(job: sp.Job, done: Callable[[list[sp.BatchMetrics]], bool], **options: Any) -> list[sp.BatchMetrics]:
    seen: list[sp.BatchMetrics] = []
    handle = job.start(on_batch=seen.append, **options)
    until = time.monotonic() + 120
    while not done(seen) and time.monotonic() < until:
        if handle.await_termination(0.2):
            break
    handle.stop()
    return seen


def test_rows_that_a_source_has_deleted_before_they_were_read_are_named(spark: SparkSession, tmp_path: Path):
    """A file is shortened, as a source does with a retention that is shorter than the pause of a query."""
    file = tmp_path / "a.json"
    file.write_text("".join(line(at, 1.0) for at in range(60)))

    def rows() -> Any:
        return sp.inputs(spark, [str(file)], SCHEMA, on_loss="skip", rows_per_trigger=5)

    ended(job_of(rows(), tmp_path))
    file.write_text("".join(line(at, 2.0) for at in range(60, 110)))
    seen = run_until(job_of(rows(), tmp_path), lambda seen: any(one.causes for one in seen))
    (cause, *_) = next(one.causes for one in seen if one.causes)
    assert (cause.name, cause.about) == ("rows lost at the source", str(file))
    assert "on_loss='skip'" in cause.line
    assert "retention" in cause.line


def test_texts_in_a_column_of_numbers_and_a_slow_trigger_are_named(spark: SparkSession, tmp_path: Path):
    (tmp_path / "in").mkdir()
    for at in range(8):
        text = "".join(line(10 * at + one, "much" if one == 3 else 1.5) for one in range(10))
        (tmp_path / "in" / f"{at}.json").write_text(text)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))

    def sink(answers: Any, _: int) -> None:
        answers.count()
        time.sleep(0.6)  # what is wrong with it

    job = job_of(rows, tmp_path, output=sink)
    seen = run_until(job, lambda seen: len(seen) >= 8, trigger="200 milliseconds")
    names = {cause.name: cause for cause in seen[-1].causes}
    assert "null price" in names["rejected rows"].line
    assert "price=null" in names["rejected rows"].examples[0]
    assert "where the trigger leaves 200 ms" in names["slow sink"].line
