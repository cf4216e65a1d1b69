"""Rows per second from `skypane-replay` to Spark, compared with Spark's own parquet source.

    python -m measure.bench.replay [--quick]

All sources run on local[2] into Spark's no-op sink, in turn, so that other load on the machine affects all alike. Rows
have an event time, an arrival time and eight doubles. Rows per second are those of whole micro-batches as Spark reports
them (planning, logs and commits included), without the first two of each query.

  parquet source    Spark's own, one file per micro-batch
  replay, parquet   one parquet file of the same rows, with as many rows per micro-batch
  replay, arrow     the same rows in an Arrow file
  replay, workload  the same number of rows, generated as they are read
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.bench.streaming import WARM_UP, Progress, noop, stream
from measure.results.record import Found, Table
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import replay, replay_workload
from skypane.workloads import workload

ROWS = 250_000
"""Rows of a micro-batch."""
BATCHES = WARM_UP + 6


def parameters(batches: int) -> dict[str, object]:
    """Return the workload of all contestants."""
    return {"rate": 100_000, "delay": "uniform", "delay_mean": "200 ms", "d": 8, "rows": batches * ROWS}


def write(folder: Path, batches: int) -> None:
    """Write the rows for those contestants that read them."""
    table = workload("poisson", **parameters(batches)).table()
    write_recording(table, folder / "rows.arrow")
    pq.write_table(table, folder / "rows.parquet", row_group_size=65_536, compression="none")
    (folder / "files").mkdir()
    for batch in range(batches):
        part: pa.Table = table.slice(batch * ROWS, ROWS)
        # Several row groups allow Spark to divide the file into two equal tasks.
        path = folder / "files" / f"{batch:05d}.parquet"
        pq.write_table(part, path, row_group_size=ROWS // 8, compression="none")


def contestants(spark: SparkSession, folder: Path, batches: int) -> dict[str, Callable[[], DataFrame]]:
    """Return what makes the stream of each contestant."""
    return {
        "parquet source": lambda: stream(spark, folder / "files"),
        "replay, parquet": lambda: replay(spark, folder / "rows.parquet", rows_per_trigger=ROWS),
        "replay, arrow": lambda: replay(spark, folder / "rows.arrow", rows_per_trigger=ROWS),
        "replay, workload": lambda: replay_workload(spark, "poisson", parameters(batches), rows_per_trigger=ROWS),
    }


def measure(spark: SparkSession, rounds: int, batches: int) -> dict[str, list[float]]:
    """Return the rows per second of each contestant, run in turn `rounds` times."""
    listener = Progress()
    spark.streams.addListener(listener)
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder = Path(temporary)
        write(folder, batches)
        asked = contestants(spark, folder, batches)
        rates: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, rows in asked.items():
                scratch = folder / "scratch"
                rates[name].append(listener.rate(noop(rows(), scratch), batches))
                shutil.rmtree(scratch, ignore_errors=True)
        return rates


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    rates = measure(sp.session("local[2]", "skypane-bench"), 1 if arguments.quick else arguments.rounds, BATCHES)
    best = statistics.median(rates["parquet source"])
    lines = [
        [
            name,
            f"{statistics.median(found):,.0f}",
            f"{min(found):,.0f} to {max(found):,.0f}",
            f"{statistics.median(found) / best:.2f}",
        ]
        for name, found in rates.items()
    ]
    head = ["source", "rows/s, median", "of all rounds", "of the parquet source"]
    table = Table("workloads.md", "replay", head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
