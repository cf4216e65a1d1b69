"""Splitting policies on Spark under bursts, compared with rows that stay where they are read and the engine's choice.

    python -m measure.bursty [--docs docs] [--master "local-cluster[4,1,1024]"] [--rate 50000]

Each micro-batch is a second of a bursty stream (I = 1, 1K, 6K) with eight criteria, in as many files as the source has
partitions. The policies run in turn, repeatedly, so that other load on the machine affects all alike. Figures are
medians over the batches after an exchange is confirmed, and ratios are of the same batches in the same round. "default"
decides by the costs of the machine. The splitting policies are made to route from the first batch on; "as read" is kept
from it by an exchange that never pays.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.tables import markdown_table, replace_between
from skypane.control.costs import Costs
from skypane.control.exchange import AS_READ, CONFIRM, PROBE_EVERY, Exchange, ExchangeState
from skypane_papers.streams import disordered, event_times

BURSTS = (1, 1_000, 6_000)
CRITERIA = [f"c{index}" for index in range(8)]
NEVER = Costs(exchange=1e9)
ROUTED = ("PB_RR", "TB_RR", "AS", "AS_PID")
CHOSEN = "default"
WAYS = (*ROUTED, AS_READ, CHOSEN)
BASE = AS_READ


class Cell(NamedTuple):
    """A stream, and how often it is run: its index of dispersion, tuples a second, seconds, files a second."""

    dispersion: float
    partitions: int
    rate: int
    batches: int
    rounds: int


def write(folder: Path, cell: Cell) -> None:
    """Write a stream: for each second of arrivals, as many files as the source is to have partitions."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    event, arrival = disordered(event_times(cell.rate, cell.dispersion, cell.batches, rng), 400_000, rng)
    for batch in range(cell.batches):
        times = event[arrival // 1_000_000 == batch]
        for part in range(cell.partitions):
            own = times[part :: cell.partitions]
            columns: dict[str, object] = {"time": pa.array(own, pa.timestamp("us", "UTC"))}
            columns |= {name: rng.random(len(own)) for name in CRITERIA}
            pq.write_table(pa.table(columns), folder / f"{batch:05d}-{part}.parquet", compression="none")


def source(spark: SparkSession, folder: Path, partitions: int) -> DataFrame:
    """Return the stream of the files, a second of arrivals a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", partitions).parquet(str(folder))


def forced(way: str) -> AbstractContextManager[Any]:
    """Make streams that start meanwhile route their rows from the first batch on, if the way is that of a policy."""
    if way not in ROUTED:
        return nullcontext()
    begun = ExchangeState(needed=True, because="made to route")
    return patch.object(Exchange, "init", lambda _: begun)


def run(
    rows: DataFrame, way: str, scratch: Path, workers: int, criteria: Sequence[str] = CRITERIA
) -> list[sp.BatchMetrics]:
    """Run a way over the stream; return what its batches told."""
    job = sp.stream(
        rows,
        sp.Skyline(sp.from_sense(criteria, ["min"] * len(criteria))),
        time="time",
        window="1 second",
        slide="200 milliseconds",
        workers=sp.WorkerOptions(plq_workers=workers, wlq_workers=workers, splitting=way if way in ROUTED else None),
        checkpoint=scratch / "checkpoint",
        output=scratch / "out",
    )
    if way == AS_READ:
        job = replace(job, settings=replace(job.settings, costs=NEVER))
    told: list[sp.BatchMetrics] = []
    with forced(way):
        job.start(trigger="available now", on_batch=told.append).await_termination()
    return told


def median(told: Sequence[sp.BatchMetrics], name: str) -> float:
    """Return the median of a figure over the batches that know it; NaN if none does."""
    figures: dict[str, list[float]] = {
        "seconds": [batch.seconds["total"] for batch in told],
        "rho": [batch.rho for batch in told if batch.rho is not None],
        "sigma": [batch.sigma for batch in told if batch.sigma is not None],
        "to the WLQ": [batch.open_rows for batch in told],
        "rows/s": [batch.rows_per_second for batch in told],
        "idle": [batch.wlq_idle for batch in told if batch.wlq_idle is not None],
    }
    return statistics.median(figures[name]) if figures[name] else float("nan")


def over(told: Sequence[sp.BatchMetrics], base: Sequence[sp.BatchMetrics]) -> str:
    """Return the seconds of batches over those of the same ones in `base`: median, and quartiles of the ratios."""
    ratios = [own.seconds["total"] / other.seconds["total"] for own, other in zip(told, base, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def measure(spark: SparkSession, cell: Cell) -> list[list[str]]:
    """Return a line of the table for each way: what its batches came to, after those in which an exchange is confirmed."""
    workers = spark.sparkContext.defaultParallelism
    with tempfile.TemporaryDirectory(prefix="skypane-bursty-") as temporary:
        folder = Path(temporary) / "stream"
        write(folder, cell)
        told: dict[str, list[sp.BatchMetrics]] = {way: [] for way in WAYS}
        for _ in range(cell.rounds):
            for way in WAYS:
                scratch = Path(temporary) / "scratch"
                told[way] += run(source(spark, folder, cell.partitions), way, scratch, workers)[CONFIRM + 1 :]
                shutil.rmtree(scratch, ignore_errors=True)
    return [
        [
            f"{cell.dispersion:,}",
            str(cell.partitions),
            way,
            *(f"{median(told[way], name):.2f}" for name in ("seconds", "rho", "sigma", "idle")),
            *(f"{median(told[way], name):,.0f}" for name in ("to the WLQ", "rows/s")),
            over(told[way], told[BASE]),
        ]
        for way in WAYS
    ]


def main() -> None:
    """Measure, print, and record the table where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bursts", type=int, nargs="+", default=BURSTS)
    arguments = parser.parse_args()
    if arguments.batches <= CONFIRM + 1:
        parser.error(f"need more than {CONFIRM + 1} batches: so many pass until an exchange is confirmed")
    if arguments.batches > PROBE_EVERY:
        parser.error(f"need at most {PROBE_EVERY} batches: the next one measures the source, and is not routed")
    # Each file is a partition of its own, even if it is small.
    spark = sp.session(arguments.master, "skypane-bursty", {"spark.sql.files.openCostInBytes": str(128 << 20)})
    lines = []
    for dispersion in arguments.bursts:
        for partitions in arguments.partitions:
            lines += measure(spark, Cell(dispersion, partitions, arguments.rate, arguments.batches, arguments.rounds))
            print("\n".join(" ".join(line) for line in lines[-len(WAYS) :]), flush=True)
    spark.stop()
    heads = ["I", "files", "way", "batch, s", "rho", "sigma", "idle", "rows held", "rows/s", "seconds over as read's"]
    table = markdown_table(heads, lines)
    print(table)
    if arguments.docs:
        replace_between(arguments.docs / "control.md", f"bursty {arguments.master}", table)


if __name__ == "__main__":
    main()
