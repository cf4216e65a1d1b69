"""Aggregates of a million keys, and of a key with half of all rows, on Spark in batch and stream.

    python -m measure.bench.many_keys batch|stream|native-stream [--quick] [--only NUMBER]

The rows, functions and windows are those of measure.bench.aggregates. `batch` compares skypane with Spark's own
windows, in turn; `stream` reads the rows in eight micro-batches and writes parquet; `native-stream` does the same with
Spark's own windows, with its state in memory. In each run the answers for some keys, the most frequent ones included,
are compared with Spark's in batch. Memory is the maximum of a process; "driver" is the Python process of the engine.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.aggregates import QUERY, WAYS, WINDOW, Case, native
from measure.processes import cpu_seconds, forget_peaks, peaks
from measure.results.record import Found, Table

CASES = (
    Case(2_000_000, 1_000_000, "10 minutes"),
    Case(2_000_000, 16_384, "1 minute", hot=0.5),
    Case(2_000_000, 16_384, "1 minute"),
)
QUICK = (Case(20_000, 10_000, "10 minutes"), Case(20_000, 1_000, "10 minutes", hot=0.5))
BATCHES = 8
WARM_UP = 2
SAMPLE = 50
MIB = 1 << 20


@dataclass(frozen=True)
class Rows:
    """The rows of a case in files, one a micro-batch, and the keys whose answers are checked."""

    case: Case
    folder: Path

    def write(self) -> Sequence[int]:
        """Write them; return the most frequent key and some others."""
        table = self.case.table()
        step = -(-table.num_rows // BATCHES)
        for number in range(BATCHES):
            part = table.slice(number * step, step)
            # Several row groups allow Spark to divide the file into two equal tasks.
            pq.write_table(
                part, self.folder / f"{number}.parquet", row_group_size=max(1, step // 8), compression="none"
            )
        counted = pc.value_counts(table["key"])
        hottest = max(counted.to_pylist(), key=lambda one: (one["counts"], -one["values"]))["values"]
        return sorted({hottest, *np.random.default_rng(3).integers(0, self.case.keys, SAMPLE).tolist()})

    def static(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(self.folder))

    def stream(self, spark: SparkSession) -> DataFrame:
        schema = self.static(spark).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


Sampled = dict[tuple[Any, int], tuple[int, float, float]]
"""Window's start and key -> count, mean, maximum."""


def wanted(rows: DataFrame, case: Case, keys: Sequence[int]) -> Sampled:
    """Return Spark's answers for some keys."""
    found = native(rows.where(sf.col("key").isin(list(keys))), case).select("w.start", "key", "n", "mean", "most")
    return {(row[0].timestamp(), row[1]): tuple(row[2:]) for row in found.collect()}


def check(found: pa.Table, right: Sampled, start: str) -> None:
    """Raise AssertionError unless the answers for the sampled keys are those."""
    starts = [moment.timestamp() for moment in found[start].to_pylist()]
    values = zip(*(found[name].to_pylist() for name in ("n", "mean", "most")), strict=True)
    ours = dict(zip(zip(starts, found["key"].to_pylist(), strict=True), values, strict=True))
    assert ours.keys() == right.keys(), (len(ours), len(right))
    for key, (n, mean, most) in right.items():
        assert ours[key][0] == n
        assert ours[key][2] == most
        assert math.isclose(ours[key][1], mean, rel_tol=1e-12), (key, ours[key], mean)


def counted(answers: DataFrame, keys: Sequence[int]) -> tuple[int, pa.Table]:
    """Return how many rows there are, and those of some keys, in one go."""
    mine = sf.when(sf.col("key").isin(list(keys)), sf.struct(*answers.columns))
    (row,) = answers.agg(sf.count("*"), sf.collect_list(mine)).collect()
    return row[0], pa.Table.from_pylist([one.asDict() for one in row[1]])


def batch(spark: SparkSession, case: Case, rounds: int) -> list[str]:
    """Return a line: wall and CPU seconds of both ways in turn, and the memory that ours has held."""
    with tempfile.TemporaryDirectory() as name:
        rows = Rows(case, Path(name))
        keys = rows.write()
        frame = rows.static(spark).repartition(2).cache()
        assert frame.count() == case.rows
        right = wanted(frame, case, keys)
        ours = WAYS["skypane"](frame, case)
        answers, sample = counted(ours, keys)
        check(sample, right, "window_start")
        taken: dict[str, list[tuple[float, float]]] = {"native": [], "skypane": []}
        held: dict[str, int] = {}
        for _ in range(rounds):
            for way, found in taken.items():
                forget_peaks()
                cpu, began = cpu_seconds(), time.perf_counter()
                WAYS[way](frame, case).write.format("noop").mode("overwrite").save()
                found.append((time.perf_counter() - began, cpu_seconds() - cpu))
                held = peaks() if way == "skypane" else held
        frame.unpersist()
    wall, cpus = ({way: statistics.median(f[kind] for f in found) for way, found in taken.items()} for kind in (0, 1))
    ours_per_second = f"{case.rows / wall['skypane']:,.0f}"
    ways = [f"{wall[way]:.1f} / {cpus[way]:.1f}" for way in taken]
    faster = [f"{of['native'] / of['skypane']:.1f}" for of in (wall, cpus)]
    return [*_named(case), f"{answers:,}", ours_per_second, *ways, *faster, *_mib(held, "driver", "worker")]


def stream(spark: SparkSession, case: Case, rounds: int) -> list[str]:
    """Return a line: ours as a stream into a folder of parquet files."""
    del rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        rows = Rows(case, folder / "in")
        keys = rows.write()
        right = wanted(rows.static(spark), case, keys)
        job = sp.stream(
            rows.stream(spark), QUERY, time="at", window=WINDOW, slide=case.slide, progress=sp.Watermark("0 seconds"),
            checkpoint=folder / "checkpoint", output=folder / "out",
        )  # fmt: skip
        seen: list[sp.BatchMetrics] = []
        forget_peaks()
        handle = job.start(trigger="available now", on_batch=seen.append)
        if not handle.await_termination(280):
            raise TimeoutError(handle.status)
        drain = handle.drain()
        held = peaks()
        check(ds.dataset(folder / "out").to_table(filter=pc.field("key").isin(list(keys))), right, "window_start")
    assert sum(metrics.rows for metrics in seen) == case.rows
    told = sum(metrics.window_rows for metrics in (*seen, *([drain] if drain else [])))
    measured = seen[WARM_UP:]
    seconds = measured[-1].started_at + measured[-1].seconds["total"] - measured[0].started_at
    where = ", ".join(sorted({metrics.wlq_where for metrics in measured if metrics.windows}))
    rate = f"{sum(metrics.rows for metrics in measured) / seconds:,.0f}"
    state = f"{max(metrics.open_bytes for metrics in seen) / MIB:,.0f}"
    state_rows = f"{max(metrics.open_rows for metrics in seen):,}"
    return [*_named(case), f"{told:,}", rate, where, state_rows, state, *_mib(held, "driver", "java", "worker")]


def native_stream(spark: SparkSession, case: Case, rounds: int) -> list[str]:
    """Return a line: Spark's own as a stream into a folder of parquet files."""
    del rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        rows = Rows(case, folder / "in")
        rows.write()
        answers = native(rows.stream(spark).withWatermark("at", "0 seconds"), case).select(
            "w.*", "key", "n", "mean", "most"
        )
        written = answers.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        forget_peaks()
        query = written.trigger(availableNow=True).start(str(folder / "out"))
        if not query.awaitTermination(280):
            query.stop()
            raise TimeoutError(f"{case}: not done in 280 s")
        held = peaks()
        progress = [one for one in query.recentProgress if one["numInputRows"]]
        told = ds.dataset(folder / "out", exclude_invalid_files=True).count_rows()
    measured = progress[WARM_UP:]
    seconds = sum(one["batchDuration"] for one in measured) / 1e3
    rate = f"{sum(one['numInputRows'] for one in measured) / seconds:,.0f}"
    states = [one["stateOperators"][0] for one in progress]
    state = f"{max(one['memoryUsedBytes'] for one in states) / MIB:,.0f}"
    rows_kept = f"{max(one['numRowsTotal'] for one in states):,}"
    return [*_named(case), f"{told:,}", rate, "workers", rows_kept, state, *_mib(held, "driver", "java", "worker")]


def _named(case: Case) -> list[str]:
    return [f"{case.rows:,}", case.named, f"{case.windows.overlap}"]


def _mib(held: dict[str, int], *kinds: str) -> list[str]:
    return [f"{held[kind] / MIB:,.0f}" for kind in kinds]


_ROWS = ["rows", "keys", "w/s", "answers"]
_STREAM = ["rows/s", "answered by", "state, rows", "state, MiB", "driver, MiB", "Java, MiB", "worker, MiB"]
KINDS: dict[str, tuple[Any, list[str]]] = {
    "batch": (
        batch,
        [*_ROWS, "rows/s", "native, s wall / CPU", "skypane, s wall / CPU", "times faster, wall", "CPU", "driver, MiB", "worker, MiB"],
    ),
    "stream": (stream, [*_ROWS, *_STREAM]),
    "native-stream": (native_stream, [*_ROWS, *_STREAM]),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--quick", action="store_true", help="small cases")
    parser.add_argument("--only", type=int, help="one of the cases, by its number from 0")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    measure, head = KINDS[arguments.kind]
    cases = QUICK if arguments.quick else CASES
    spark = sp.session("local[2]", "skypane-bench", {"spark.driver.memory": "6g"})
    lines = []
    for case in cases if arguments.only is None else (cases[arguments.only],):
        lines.append(measure(spark, case, arguments.rounds))
        print(lines[-1], flush=True)
    table = Table("bench-aggregates.md", f"many keys, {arguments.kind}", head, lines)
    print(table.text)
    return [table] if arguments.only is None else []


if __name__ == "__main__":
    main()
