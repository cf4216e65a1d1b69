"""The time from the row that closes a window to its readable answer, at several rates, and the cost of a small batch.

    python -m measure.bench.latency [--quick] [--rates 1000 10000 50000 100000] [--criteria 4 8]

A recording is replayed in real time on local[2]: the skyline of windows of 1 s every 0.2 s with independent criteria.
Rows are up to 0.2 s late, and the watermark has a fixed delay of 0.2 s, so that no row is dropped. A window is closed
by the first row in order of arrival that is 0.2 s or more past its end. Its latency is the time from the arrival of
that row until the batch is reported as committed, when its file is in the output folder. Windows of the first seconds
are left out.

The replay's clock runs in another process. Its start follows from the rows of each batch, which are those that had
arrived when Spark requested the offset, between the start of the batch and the time that Spark records for the request.
Over all batches the uncertainty is a few milliseconds.

The cost of a small batch is measured with files of 10,000 rows, one per batch, through the engine and through one empty
Python stage, in turn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent

import skypane as sp
from measure.bench.streaming import WARM_UP, Case, Progress, engine, listened, measure, unmeasured
from measure.results.record import Found, Table
from skypane.metrics import BatchMetrics
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import replay
from skypane.types import FloatArray, IntArray

LATE_MICROS: Final = 200_000
SLIDE_MICROS: Final = 200_000
WINDOW_MICROS: Final = 1_000_000
WARM_SECONDS: Final = 5
WARM_WINDOWS: Final = 100
"""Windows of a stream that goes before all others: Java compiles what it runs often."""

SMALL_ROWS: Final = 10_000
PAGE: Final = "bench-streaming.md"
HEAD: Final = ("rows/s", "criteria", "windows", "p50, ms", "p95, ms", "p99, ms")


class Asked(Progress):
    """Notes when each batch began, and until when Spark may have asked how many rows there are, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[tuple[int, float, float]] = []

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        super().onQueryProgress(event)
        progress = event.progress
        began = datetime.fromisoformat(progress.timestamp).timestamp()
        asking = progress.durationMs.get("latestOffset", 0) / 1e3
        self.moments.append((progress.numInputRows, began, began + asking + 1e-3))


@dataclass(frozen=True)
class Recording:
    """Rows at a steady rate, each up to 0.2 s after its event; times in microseconds from 0."""

    times: IntArray
    arrivals: IntArray

    @classmethod
    def of(cls, rate: int, seconds: int) -> Recording:
        arrivals = np.arange(rate * seconds) * 1_000_000 // rate
        return cls(arrivals - np.random.default_rng(rate).integers(0, LATE_MICROS, arrivals.size), arrivals)

    def write(self, path: Path, criteria: int) -> None:
        """Write the rows, with independent criteria."""
        rng = np.random.default_rng(criteria)
        columns: dict[str, object] = {
            "time": pa.array(self.times, pa.timestamp("us", "UTC")),
            "arrival": pa.array(self.arrivals, pa.timestamp("us", "UTC")),
        }
        columns |= {f"c{index}": rng.random(self.times.size) for index in range(criteria)}
        write_recording(pa.table(columns), path)

    def closing(self, end: int) -> int:
        """Return when the row that closes the window with this end arrives."""
        newest = np.maximum.accumulate(self.times)
        return int(self.arrivals[np.searchsorted(newest, end + LATE_MICROS)])


def latencies(spark: SparkSession, asked: Asked, rate: int, criteria: int, windows: int) -> FloatArray:
    """Return the latencies of so many windows, in milliseconds."""
    recording = Recording.of(rate, windows * SLIDE_MICROS // 1_000_000 + WARM_SECONDS + 3)
    told: list[tuple[BatchMetrics, float]] = []
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        path = Path(folder) / "rows.arrow"
        recording.write(path, criteria)
        asked.moments.clear()
        job = sp.stream(
            replay(spark, path, arrival="arrival", speedup=1.0),
            sp.Skyline(sp.from_sense([f"c{index}" for index in range(criteria)], ["min"] * criteria)),
            time="time",
            window="1 second",
            slide="200 milliseconds",
            progress=sp.Watermark("200 milliseconds"),
            checkpoint=f"{folder}/checkpoint",
            output=f"{folder}/out",
        )
        handle = job.start(on_batch=lambda metrics: told.append((metrics, time.time())))
        while not handle.await_termination(0.5):
            if sum(metrics.rows for metrics, _ in told) == recording.times.size or not handle.status["active"]:
                break
        handle.stop()
    began = _began(recording, asked)
    return (
        np.array([found for found, since in _measured(recording, told, began) if since > WARM_SECONDS])[:windows] * 1e3
    )


def _began(recording: Recording, asked: Asked) -> float:
    """Return when the row with arrival 0 came, in seconds since the epoch: after all that is before, before all that is after."""
    low, high, rows = -np.inf, np.inf, 0
    for more, began, asking in asked.moments:
        rows += more
        if 1 < rows < recording.times.size and more:
            # when Spark requested the offset, the last row of the batch had arrived, and the next row had not
            low = max(low, began - recording.arrivals[rows] / 1e6)
            high = min(high, asking - recording.arrivals[rows - 1] / 1e6)
    return (low + high) / 2


def _measured(
    recording: Recording, told: Sequence[tuple[BatchMetrics, float]], began: float
) -> list[tuple[float, float]]:
    """Return the latency of each window that was answered, and when it was closed, in seconds from the first row."""
    found: list[tuple[float, float]] = []
    for metrics, at in told:
        if metrics.latest_window is not None:
            for back in range(metrics.windows):
                closing = recording.closing(metrics.latest_window["end"] - back * SLIDE_MICROS) / 1e6
                found.append((at - began - closing, closing))
    return found


def small_batches(spark: SparkSession, asked: Asked, criteria: Sequence[int], rounds: int) -> list[list[str]]:
    """Return what a batch of 10,000 rows takes, in milliseconds, beside one empty Python hop."""
    lines = []
    for d in criteria:
        case = Case(SMALL_ROWS, d, WARM_UP + 40)
        rates = measure(spark, asked, case, rounds, {"identity": unmeasured, "engine": engine})
        floor, whole = (SMALL_ROWS / rates[name] * 1e3 for name in ("identity", "engine"))
        lines.append([str(d), f"{floor:.0f}", f"{whole:.0f}", f"{round(whole - floor)}"])
    return lines


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one rate, 50 windows")
    parser.add_argument("--rates", type=int, nargs="+", default=[1_000, 10_000, 50_000, 100_000])
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--windows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.rates, arguments.windows, arguments.rounds = [10_000], 50, 1
        arguments.criteria = arguments.criteria[:1]
    asked = Asked()
    spark, _ = listened(asked)
    lines = []
    for d in arguments.criteria:
        latencies(spark, asked, 10_000, d, WARM_WINDOWS)
        for rate in arguments.rates:
            found = latencies(spark, asked, rate, d, arguments.windows)
            quantiles = (f"{value:.0f}" for value in np.quantile(found, [0.5, 0.95, 0.99]))
            lines.append([f"{rate:,}", str(d), str(len(found)), *quantiles])
            print(lines[-1], flush=True)
    small = small_batches(spark, asked, arguments.criteria, arguments.rounds)
    tables = [
        Table(PAGE, "latency", HEAD, lines),
        Table(PAGE, "small", ["criteria", "empty stage, ms", "engine, ms", "difference, ms"], small),
    ]
    print(*(table.text for table in tables), sep="\n\n")
    return [*tables]


if __name__ == "__main__":
    main()
