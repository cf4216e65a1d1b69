"""A stream whose rate steps x1, x4, x1, x8, x1 on Spark: elastic workers against the fewest and the most of them.

    python -m experiments.elastic_steps [--docs docs] [--master "local-cluster[8,1,512]"] [--step 50]

Each row's work is to wait 20 ms for a service (elastic_service.py), so that eight workers are eight workers on any machine:
a worker does 50 rows a second, x1 is half of what one can do. The runs follow each other in one session, whose eight
executors stay: a worker is a task that may run at a time. What is measured: rows that have come and are not lifted when a
batch ends, from a window's end to its answer, and how many workers there may be, summed over time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.record import markdown_table, replace_between
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

import skypane as sp
from experiments.elastic_service import SECONDS, Asked, service
from skypane.reporting.style import PLAIN
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sources.replay import replay
from skypane.types import FloatArray

FACTORS: Final = (1, 4, 1, 8, 1)
MOST: Final = 8
RATE: Final = 0.5 / SECONDS
"""Rows a second at x1."""
ELASTIC = sp.Fuzzy(max_workers=MOST + 1, most_plq=MOST, most_wlq=1, every=2)
RUNS: dict[str, dict[str, Any]] = {
    "elastic": {"elastic": ELASTIC, "plq_workers": 1},
    "fewest": {"elastic": None, "plq_workers": 1},
    "most": {"elastic": None, "plq_workers": MOST},
}
_SLIDE = 2.0


@dataclass(frozen=True)
class Shown:
    """A run: by batch, when it ended (seconds of the stream), rows that waited then, workers, and seconds up to the next.

    latencies   seconds from each window's end to its answer
    """

    ended: FloatArray
    backlog: FloatArray
    workers: FloatArray
    lasted: FloatArray
    answered: FloatArray
    latencies: FloatArray

    @property
    def worker_seconds(self) -> float:
        return float(self.workers @ self.lasted)


def times(step: float) -> FloatArray:
    """Return when each row comes, in seconds."""
    return np.concatenate([
        number * step + (np.arange(round(factor * RATE * step)) + 0.5) / (factor * RATE)
        for number, factor in enumerate(FACTORS)
    ])  # fmt: skip


def write(folder: Path, at: FloatArray) -> Path:
    """Write the recording."""
    rng, path = np.random.default_rng(0), folder / "offers.parquet"
    columns: dict[str, Any] = {
        "id": np.arange(len(at)),
        "ts": pa.array((at * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
        "price": rng.random(len(at)),
        "rating": rng.random(len(at)),
    }
    pq.write_table(pa.table(columns), path)
    return path


def run(
    spark: SparkSession, recording: Path, at: FloatArray, options: dict[str, Any], scratch: Path, port: int
) -> Shown:
    """Run the stream for as long as its rates are given, and no longer; return what its batches showed."""
    job = sp.stream(
        replay(spark, recording, arrival="ts", speedup=1.0, partitions=MOST), Asked(port), time="ts",
        window=f"{2 * _SLIDE} seconds", slide=f"{_SLIDE} seconds", splitting="TB_RR", wlq_workers=1,
        checkpoint=scratch / "checkpoint", output=scratch / "out", **options,
    )  # fmt: skip
    seen: list[sp.BatchMetrics] = []
    handle = job.start(trigger="3 seconds", on_batch=seen.append)
    handle.await_termination(float(at[-1]) + 8)
    handle.stop(patience=1)
    print(handle.explain())
    return shown(seen, at)


def shown(seen: Sequence[sp.BatchMetrics], at: FloatArray) -> Shown:
    """Return what the batches come to, the one of the first row left out; the stream's clock starts after it."""
    seen = [batch for batch in seen if batch.rows > 1]
    newest = np.array([batch.newest or 0 for batch in seen]) / 1e6
    began = np.array([batch.started_at for batch in seen])
    start = float((began - newest).min())  # a batch has all that had come when it was planned
    ended = began + np.array([batch.seconds["total"] for batch in seen]) - start
    lifted = 1 + np.cumsum([batch.rows for batch in seen])
    waits = [(end, end - closes) for batch, end in zip(seen, ended, strict=True) for closes in _closed(batch)]
    until = max(float(at[-1]), float(ended[-1]))
    return Shown(
        ended=np.append(ended, until),
        backlog=np.append(np.searchsorted(at, ended) - lifted, len(at) - lifted[-1]).astype(float),
        workers=np.array([batch.workers["plq"] for batch in seen], float),
        lasted=np.diff(np.append(began - start, until)),
        answered=np.array([end for end, _ in waits]),
        latencies=np.array([wait for _, wait in waits]),
    )


def _closed(batch: sp.BatchMetrics) -> list[float]:
    """Return the ends of the windows that the batch answered, in seconds of the stream."""
    if batch.latest_window is None:
        return []
    last = batch.latest_window["end"] / 1e6
    return [last - _SLIDE * back for back in range(batch.windows)]


def warm(spark: SparkSession) -> None:
    """Wait until executors and their Python workers have started."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    spark.range(0, 1000, 1, 4 * MOST).mapInArrow(same, "id long").count()


def table(runs: dict[str, Shown]) -> list[list[str]]:
    """Return a line for each run."""
    most = runs["most"].worker_seconds
    return [
        [
            name,
            f"{one.workers @ one.lasted / one.lasted.sum():.2f}",
            f"{one.worker_seconds:.0f} ({one.worker_seconds / most:.0%})",
            f"{one.backlog.max():.0f}",
            f"{one.backlog[-1]:.0f}",
            f"{np.median(one.latencies):.1f}",
            f"{np.percentile(one.latencies, 95):.1f}",
        ]
        for name, one in runs.items()
    ]


def draw(path: Path, at: FloatArray, runs: dict[str, Shown], step: float) -> None:
    """Draw backlog, latency of windows, and workers over time."""
    with mpl.rc_context({**PLAIN, "legend.frameon": False}):
        figure = Figure(figsize=(9.5, 8), layout="constrained")
        rate, backlog, latency, workers = figure.subplots(4, 1, sharex=True)
        rate.stairs([factor * RATE for factor in FACTORS], np.arange(len(FACTORS) + 1) * step, color="#8a8f98")
        _named(rate, "rows/s")
        for (name, one), colour in zip(runs.items(), ("#1b6ca8", "#d1495b", "#3a7d44"), strict=True):
            backlog.plot(one.ended, one.backlog, color=colour, label=name)
            latency.plot(one.answered, one.latencies, ".", markersize=3, color=colour)
            workers.step(one.ended[:-1], one.workers, where="post", color=colour)
        _named(backlog, "rows waiting")
        backlog.set_yscale("symlog", linthresh=100)
        backlog.legend(loc="upper left")
        _named(latency, "window's end\nto answer, s")
        latency.set_yscale("log")
        _named(workers, "workers")
        workers.set_xlabel("seconds")
        workers.set_xlim(0, float(at[-1]))
        figure.savefig(path, format="svg", metadata={"Date": None})


def _named(axes: Axes, name: str) -> None:
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)


def main() -> None:
    """Run all three, and tell what they come to."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--docs", type=Path)
    options.add_argument("--master", default=f"local-cluster[{MOST},1,512]")
    options.add_argument("--step", type=float, default=50.0)
    given = options.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(["src", "."])  # executors inherit it, and find the query by it
    conf = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.network.timeout": "900s",
        "spark.python.authenticate.socketTimeout": "300s",
    }
    at = times(given.step)
    with tempfile.TemporaryDirectory(prefix="skypane-elastic-") as temporary, service() as port:
        spark = session(given.master, "skypane-elastic-steps", conf)
        recording = write(Path(temporary), at)
        warm(spark)
        runs = {name: run(spark, recording, at, chosen, Path(temporary) / name, port) for name, chosen in RUNS.items()}
        spark.stop()
    head = [
        "workers",
        "on average",
        "worker-seconds",
        "rows waiting, at most",
        "at the end",
        "latency, median (s)",
        "95 %",
    ]
    told = f"{given.master}, steps of {given.step:g} s, load of the machine {os.getloadavg()[2]:.1f}."
    text = f"{told}\n\n{markdown_table(head, table(runs))}"
    print(text)
    if given.docs is not None:
        draw(given.docs / "elastic-steps.svg", at, runs, given.step)
        replace_between(given.docs / "control.md", "elastic steps", text)


if __name__ == "__main__":
    main()
