"""Helpers of the experiments with elastic workers on Spark: a rate that steps, and a run over it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from skypane.operators.query import Query
from skypane.runtime.spark.machine.session import session
from skypane.types import FloatArray

LEAD: Final = 15.0
"""Seconds before a profile begins, in which its query does."""
MOST: Final = 8
"""Workers at most."""
PARTITIONS: Final = 3 * MOST
"""Of the source: with as many as workers, five to seven of them would be no faster than four."""
SLIDE: Final = 2.0
BOUNDS: Final[dict[str, Any]] = {"max_workers": 2 * MOST, "max_plq": MOST, "max_wlq": 1}
ELASTIC: Final = sp.Fuzzy(**BOUNDS)


@dataclass(frozen=True)
class Profile:
    """A rate of `rate` rows a second times a factor, which holds for `step` seconds, from `begin` on (seconds since the epoch)."""

    rate: float
    factors: tuple[int, ...]
    step: float
    begin: float

    @property
    def end(self) -> float:
        return self.begin + len(self.factors) * self.step

    def rows(self, until: FloatArray) -> FloatArray:
        """Return how many rows have come since the beginning."""
        edges = self.begin + np.arange(len(self.factors) + 1) * self.step
        come = np.concatenate([[0.0], np.cumsum(np.array(self.factors) * self.rate * self.step)])
        return np.asarray(np.interp(until, edges, come), np.float64)

    def offers(self, spark: SparkSession) -> DataFrame:
        """Return the stream: Spark's own rate source at the largest factor, of which as many rows are kept as the factor says."""
        most = max(self.factors)
        rows = (
            spark.readStream.format("rate")
            .options(rowsPerSecond=round(most * self.rate), numPartitions=PARTITIONS)
            .load()
        )
        factor = sf.lit(self.factors[0])
        for number, kept in enumerate(self.factors[1:], 1):
            factor = sf.when(
                sf.col("timestamp") < sf.timestamp_seconds(sf.lit(self.begin + number * self.step)), factor
            ).otherwise(kept)
        # Values go to partitions in turn; only whole rounds are kept, so that all partitions have equally many rows.
        return rows.where(sf.floor(sf.col("value") / PARTITIONS) % most < factor).select(
            sf.col("value").alias("id"),
            sf.col("timestamp").alias("ts"),
            (sf.pmod(sf.hash("value"), sf.lit(1000)) / 1000).alias("price"),
            (sf.pmod(sf.hash(-sf.col("value")), sf.lit(1000)) / 1000).alias("rating"),
        )


def begun(master: str) -> SparkSession:
    """Return a session whose executors and their Python workers have started, and loaded what lifts rows.

    That takes a new Python worker four seconds of a core: all of them at once would be what is measured, on few cores.
    """
    spark = started(master)
    spark.range(0, 1000, 1, 4 * MOST).mapInArrow(_loaded, "id long").count()
    return spark


def started(master: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session whose executors find the queries of the experiments."""
    root = Path(__file__).resolve().parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(root / "src"), str(root)]
    )  # executors inherit it, and use it to find the query
    return session(
        master,
        "skypane-elastic",
        {
            "spark.executor.memory": "512m",
            "spark.driver.memory": "1g",
            "spark.network.timeout": "900s",
            "spark.python.authenticate.socketTimeout": "300s",
            **(conf or {}),
        },
    )


def _loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from skypane.runtime.spark.engine.plq import LiftStage  # noqa: F401, PLC0415  # loads all modules that a task needs

    sp.Skyline("price MIN, rating MAX").lift(pa.table({"price": [1.0, 2.0], "rating": [1.0, 2.0]}))
    yield from batches


def run(spark: SparkSession, profile: Profile, query: Query, scratch: Path, **options: Any) -> list[sp.BatchMetrics]:
    """Run a query over the profile's rows until it ends, and no longer; return the metrics of the batches since it began."""
    seen: list[sp.BatchMetrics] = []
    job = sp.stream(
        profile.offers(spark), query, time="ts", window=f"{2 * SLIDE} seconds", slide=f"{SLIDE} seconds",
        workers=sp.WorkerOptions(splitting="TB_RR", wlq_workers=1, **options),
        checkpoint=scratch / "checkpoint", output=scratch / "out",
    )  # fmt: skip
    handle = job.start(trigger="3 seconds", on_batch=seen.append)
    handle.await_termination(profile.end - time.time())
    handle.stop(timeout=1)
    print(handle.explain())
    return [batch for batch in seen if batch.newest is not None and batch.newest / 1e6 >= profile.begin]
