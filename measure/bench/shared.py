"""Five queries over one stream: one job of sp.streams against five jobs of sp.stream.

    python -m measure.bench.shared [--rows 10000 100000] [--rounds 5]

The queries are a skyline of four criteria, a top-k and three aggregates, with windows of five lengths. Both ways run on
local[2] over the same parquet files, one file per micro-batch, in turn, so that other load on the machine affects both
alike; the five jobs run one after the other. Seconds are those of the batches after the first four of each job, from the
end of one to the end of the last: wall, and CPU of the driver, Java and the workers together. Answers are compared.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.streaming import DISORDER_MICROS, stream
from measure.processes import cpu_seconds
from measure.results.record import Found, Table
from skypane.operators.query import Query

WARM_UP: Final = 4
BATCHES: Final = 16
KEYS: Final = 100
SPAN: Final = 1_000_000
"""Microseconds of event time of a micro-batch."""

QUERIES: Final[dict[str, Query]] = {
    "best": sp.Skyline("c0 MIN, c1 MIN, c2 MIN, c3 MIN"),
    "first": sp.TopK(10, "c0 + c1"),
    "load": sp.Aggregate("key", n=sp.count(), total=sp.sum("c0")),
    "mean": sp.Aggregate("key", mean=sp.avg("c1")),
    "ends": sp.Aggregate(low=sp.min("c2"), high=sp.max("c3")),
}
WINDOWS: Final = {
    "best": sp.Windows.of("2 seconds", "500 milliseconds"),
    "first": sp.Windows.of("1 second"),
    "load": sp.Windows.of("4 seconds", "1 second"),
    "mean": sp.Windows.of("10 seconds", "2 seconds"),
    "ends": sp.Windows.of("5 seconds"),
}


class Spent(NamedTuple):
    """Seconds of the batches after the warm-up."""

    wall: float
    cpu: float

    def __add__(self, other: object) -> Spent:
        assert isinstance(other, Spent)
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


def write(folder: Path, rows: int) -> None:
    """Write the stream, one file a micro-batch of `rows` rows."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    for batch in range(BATCHES):
        arrival = np.sort(rng.integers(batch * SPAN, (batch + 1) * SPAN, rows))
        times = arrival - rng.integers(0, DISORDER_MICROS, rows)
        columns: dict[str, object] = {"time": pa.array(times, pa.timestamp("us", "UTC"))}
        columns |= {f"c{index}": rng.random(rows) for index in range(4)} | {"key": rng.integers(0, KEYS, rows)}
        path = folder / f"{batch:05d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=max(rows // 8, 1), compression="none")


def run(job: sp.Job) -> Spent:
    """Run a job over all that is there."""
    marks: list[Spent] = []
    handle = job.start(
        trigger="available now", on_batch=lambda _: marks.append(Spent(time.perf_counter(), cpu_seconds()))
    )
    handle.await_termination()
    assert len(marks) == BATCHES, marks
    first, last = marks[WARM_UP - 1], marks[-1]
    return Spent(last.wall - first.wall, last.cpu - first.cpu)


def together(spark: SparkSession, folder: Path, scratch: Path) -> Spent:
    """Run one job of all queries."""
    return run(
        sp.streams(
            stream(spark, folder),
            QUERIES,
            time="time",
            window=WINDOWS,
            checkpoint=scratch / "checkpoint",
            output=scratch / "out",
        )
    )


def apart(spark: SparkSession, folder: Path, scratch: Path) -> Spent:
    """Run a job for each query, one after the other."""
    jobs = (
        sp.stream(
            stream(spark, folder),
            query,
            time="time",
            window=WINDOWS[name],
            checkpoint=scratch / f"checkpoint-{name}",
            output=scratch / "out" / name,
        )
        for name, query in QUERIES.items()
    )
    return sum(map(run, jobs), Spent(0.0, 0.0))


WAYS: Final[dict[str, Callable[[SparkSession, Path, Path], Spent]]] = {"together": together, "apart": apart}


def measure(spark: SparkSession, rows: int, rounds: int) -> dict[str, Spent]:
    """Return the median seconds of each way; a first round, which compiles what Java runs often, does not count."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder = Path(temporary) / "stream"
        write(folder, rows)
        spent: dict[str, list[Spent]] = {name: [] for name in WAYS}
        for number in range(rounds + 1):
            answers = {}
            for name, way in WAYS.items():
                scratch = Path(temporary) / "scratch"
                seconds = way(spark, folder, scratch)
                answers[name] = dict(_answers(scratch / "out"))
                shutil.rmtree(scratch)
                if number:
                    spent[name].append(seconds)
            assert answers["together"] == answers["apart"]
        return {name: Spent(*map(statistics.median, zip(*values, strict=True))) for name, values in spent.items()}


def _answers(out: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the number of rows of each query, and a text of its first and last ones in order."""
    for name in QUERIES:
        rows = pa.concat_tables(pq.read_table(path) for path in sorted((out / name).glob("*.parquet")))
        rows = rows.sort_by([(column, "ascending") for column in rows.column_names])
        yield (
            name,
            (rows.num_rows, str(rows.slice(0, 5).to_pylist()) + str(rows.slice(max(0, rows.num_rows - 5)).to_pylist())),
        )


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one size, one round")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 500_000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    spark = sp.session("local[2]", "skypane-bench")
    lines = []
    for rows in [10_000] if arguments.quick else arguments.rows:
        found = measure(spark, rows, 1 if arguments.quick else arguments.rounds)
        one, five = found["together"], found["apart"]
        batches = BATCHES - WARM_UP
        figures = [
            *(f"{seconds / batches * 1e3:,.0f}" for seconds in (one.cpu, five.cpu, one.wall, five.wall)),
            *(f"{ratio:.2f}" for ratio in (one.cpu / five.cpu, one.wall / five.wall)),
        ]
        lines.append([f"{rows:,}", *figures])
        print(lines[-1], flush=True)
    head = [
        "one job, CPU ms/batch",
        "five jobs, CPU ms",
        "one job, wall ms",
        "five jobs, wall ms",
        "CPU ratio",
        "wall ratio",
    ]
    table = Table("bench-streaming.md", "shared", ["rows/batch", *head], lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
