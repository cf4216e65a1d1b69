"""Aggregates per key over sliding windows: Spark's own window(), skypane, and rows passed through Python, in turn.

The operators alone, without Spark, are compared with duckdb and polars.

    python -m measure.bench.aggregates [--quick] [--rows N] [--keys K ...] [--slides SLIDE ...]

The query is count, average and maximum per key. Rows are spread evenly over twice the window, and keys are uniform or
by Zipf's law. Each way runs once to warm up; then all take turns. Because wall seconds vary on a busy machine, the
tables also have the CPU seconds of all processes.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.cached_rows import cached_rows
from measure.bench.streaming import without_sums
from measure.processes import cpu_seconds
from measure.results.record import Found, Table
from skypane.operators.open_panes import OpenPanes
from skypane.operators.window_query import WindowQuery
from skypane.types import micros
from skypane.windows import Windows

PAGE = "bench-aggregates.md"
WINDOW = "1 hour"
PARTITIONS = 2
WARM = 200
"""Rows of a run that is not measured."""

QUERY = sp.Aggregate("key", n=sp.count(), mean=sp.avg("x"), most=sp.max("x"))


@dataclass(frozen=True)
class Case:
    """Rows over twice the window."""

    rows: int
    keys: int
    slide: str
    zipf: bool = False
    #: share of the rows that get one key, in addition to the rows that it has anyway
    hot: float = 0.0

    @property
    def windows(self) -> Windows:
        return Windows.of(WINDOW, self.slide)

    @property
    def named(self) -> str:
        """The keys in words."""
        law = "Zipf" if self.zipf else f"{self.hot:.0%} of one" if self.hot else "uniform"
        return f"{self.keys:,} {law}"

    @property
    def many(self) -> int:
        """How many rows of a key in a window are many: of keys that are all alike, one in a hundred has more."""
        mean = self.rows / self.keys / 2
        return round(mean + 2.33 * math.sqrt(mean))

    def table(self) -> pa.Table:
        """Return the rows, in the order of time."""
        rng = np.random.default_rng(7)
        times = np.sort(rng.integers(0, 2 * micros(WINDOW), self.rows)) + 1_700_000_000_000_000
        weights = 1 / np.arange(1, self.keys + 1) ** (1.1 if self.zipf else 0.0)
        keys = rng.permutation(self.keys)[rng.choice(self.keys, self.rows, p=weights / weights.sum())]
        keys = np.where(rng.random(self.rows) < self.hot, 0, keys) if self.hot else keys
        at = pa.array(times, pa.timestamp("us", "UTC"))
        return pa.table({"at": at, "key": keys, "x": np.round(rng.gamma(2, 20, self.rows), 3)})


def native(rows: DataFrame, case: Case) -> DataFrame:
    """Spark's own."""
    grouped = rows.groupBy(sf.window("at", WINDOW, case.slide).alias("w"), "key")
    return grouped.agg(sf.count("*").alias("n"), sf.avg("x").alias("mean"), sf.max("x").alias("most"))


def ours(rows: DataFrame, case: Case) -> DataFrame:
    """Ours."""
    return sp.ask(rows, QUERY, time="at", window=WINDOW, slide=case.slide)


def identity(rows: DataFrame, case: Case) -> DataFrame:
    """One hop through Python: as many rows in, and as many out of the same columns, about which nothing is thought.

    It is measured without Spark's sum of the bytes of a batch after each row: the least that rows to Python cost.
    """
    schema, each = ours(rows, case).schema, -(-_answers(case) // PARTITIONS)
    names = schema.names

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        numbers = np.arange(each)
        moments = pa.array(numbers, pa.timestamp("us", "UTC"))
        known = {"n": numbers, "key": numbers, "mean": numbers / 3, "most": numbers / 7}
        yield from pa.table({name: known.get(name, moments) for name in names}).to_batches(10_000)

    return rows.mapInArrow(made, schema)


@cache
def _answers(case: Case) -> int:
    """Return how many rows answer a case."""
    rows, windows = case.table(), case.windows
    panes = windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    starts = np.flatnonzero(np.concatenate(([True], np.diff(panes) != 0)))
    held: OpenPanes[pa.Table] = OpenPanes.empty(windows)
    held = held.add(zip(panes[starts].tolist(), QUERY.lift_panes(rows, starts.tolist()), strict=True))
    worker = WindowQuery(QUERY, windows, "UTC").worker()
    return sum(worker.answer(task, lambda partial: partial).rows.num_rows for task in held.all_windows())


def native_few(rows: DataFrame, case: Case) -> DataFrame:
    """Spark's own, with few of the answers."""
    return native(rows, case).where(f"n > {case.many}")


def few(rows: DataFrame, case: Case) -> DataFrame:
    """Ours, with few of the answers: the others do not leave the workers."""
    functions: dict[str, Any] = dict(QUERY.functions)
    query = sp.Aggregate(QUERY.by, having=f"n > {case.many}", **functions)
    return sp.ask(rows, query, time="at", window=WINDOW, slide=case.slide)


WAYS: dict[str, Callable[[DataFrame, Case], DataFrame]] = {
    "native": native,
    "skypane": ours,
    "identity": identity,
    "native, few": native_few,
    "skypane, few": few,
}


def measure(frame: DataFrame, case: Case, way: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of one run, its rows written nowhere; after a small one, for workers end when idle."""
    WAYS[way](frame.limit(WARM), case).write.format("noop").mode("overwrite").save()
    with without_sums(frame.sparkSession) if way == "identity" else nullcontext():
        cpu, began = cpu_seconds(), time.perf_counter()
        WAYS[way](frame, case).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began, cpu_seconds() - cpu


def compare(spark: SparkSession, case: Case, rounds: int) -> list[str]:
    """Return a line of the table: all ways in turn, medians."""
    frame = cached_rows(spark, case.table(), PARTITIONS)
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way, found in taken.items():
            figures = measure(frame, case, way)
            if number:
                found.append(figures)
    frame.unpersist()
    wall, cpu = (
        {way: statistics.median(figure[kind] for figure in found) for way, found in taken.items()} for kind in (0, 1)
    )
    return [
        f"{case.rows:,}",
        case.named,
        f"{case.windows.overlap}",
        *(f"{wall[way]:.2f} / {cpu[way]:.2f}" for way in WAYS),
        *(f"{kind['native'] / kind['skypane']:.1f}" for kind in (wall, cpu)),
        *(f"{kind['native, few'] / kind['skypane, few']:.1f}" for kind in (wall, cpu)),
    ]


def duckdb_rows(rows: pa.Table, case: Case) -> int:
    """Answer by duckdb in the form that is its fastest: sums by slice, on a grid of all keys and slices, framed by rows."""
    windows = case.windows
    panes = windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    sliced = rows.select(["key", "x"]).append_column(
        "pane", pa.array(panes)
    )  # duckdb finds the table by the name of this variable
    frame = f"PARTITION BY key ORDER BY pane ROWS BETWEEN {windows.overlap - 1} PRECEDING AND CURRENT ROW"
    found = duckdb.sql(f"""
        WITH slices AS (SELECT key, pane, count(*) AS n, sum(x) AS total, max(x) AS most FROM sliced GROUP BY ALL),
             grid AS (SELECT key, pane FROM (SELECT DISTINCT key FROM slices),
                      range({panes.min()}, {panes.max() + windows.overlap}) AS numbers(pane)),
             framed AS (SELECT pane, key, sum(n) OVER f AS n, sum(total) OVER f AS total, max(most) OVER f AS most
                        FROM grid LEFT JOIN slices USING (key, pane) WINDOW f AS ({frame}))
        SELECT pane, key, n, total / n AS mean, most FROM framed WHERE n > 0""")  # noqa: S608 - numbers only
    assert found is not None
    assert sliced.num_rows == case.rows
    return int(found.to_arrow_table().num_rows)


def polars_rows(rows: pa.Table, case: Case) -> int:
    """Answer by polars' own windows, which leave out those that begin before a key's first row."""
    length, slide = (f"{length}us" for length in (case.windows.length, case.windows.slide))
    grouped = pl.DataFrame(rows).group_by_dynamic("at", every=slide, period=length, group_by="key")
    mean, most = pl.col("x").mean().alias("mean"), pl.col("x").max().alias("most")
    return grouped.agg(pl.len().alias("n"), mean, most).height


PEERS: dict[str, Callable[[pa.Table, Case], int]] = {"duckdb": duckdb_rows, "polars": polars_rows}


def operators(case: Case, rounds: int) -> list[str]:
    """Return a line of the other table: the operators alone, in this process, in CPU seconds; peers take turns with them."""
    rows, windows = case.table(), case.windows
    panes = windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    starts = np.flatnonzero(np.concatenate(([True], np.diff(panes) != 0)))
    lifting, answering, answers = [], [], 0
    peers: dict[str, list[float]] = {peer: [] for peer in PEERS}
    for _ in range(rounds + 1):
        began = time.process_time()
        partials = QUERY.lift_panes(rows, starts.tolist())
        lifted = time.process_time()
        held: OpenPanes[pa.Table] = OpenPanes.empty(windows).add(zip(panes[starts].tolist(), partials, strict=True))
        worker = WindowQuery(QUERY, windows, "UTC").worker()
        answers = sum(worker.answer(task, lambda partial: partial).rows.num_rows for task in held.all_windows())
        lifting.append(lifted - began)
        answering.append(time.process_time() - lifted)
        for peer, taken in peers.items():
            began = time.process_time()
            count = PEERS[peer](rows, case)
            taken.append(time.process_time() - began)
            assert count == answers or peer == "polars"
    lift, answer = (statistics.median(seconds[1:]) for seconds in (lifting, answering))
    others = [statistics.median(taken[1:]) for taken in peers.values()]
    rates = [case.rows / lift, answers / answer, *(case.rows / seconds for seconds in (lift + answer, *others))]
    figures = [f"{rate / 1e6:.3g}" for rate in rates]
    faster = [f"{seconds / (lift + answer):.1f}" for seconds in others]
    return [f"{case.rows:,}", case.named, f"{windows.overlap}", f"{answers:,}", *figures, *faster]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small case")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 16_384, 100_000])
    parser.add_argument("--slides", nargs="+", default=["1 minute", "10 seconds"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--operators", action="store_true", help="the operators alone, without Spark")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.rows, arguments.keys, arguments.slides, arguments.rounds = 20_000, [1_000], ["1 minute"], 1
    cases = [
        Case(arguments.rows, keys, slide, zipf)
        for slide in arguments.slides
        for keys in arguments.keys
        for zipf in (False, True)
    ]
    head = ["rows", "keys", "w/s", "answers", "lift, M rows/s", "answer, M rows/s", "both, M rows/s"]
    head += [*(f"{peer}, M rows/s" for peer in PEERS), *(f"times faster than {peer}" for peer in PEERS)]
    lines = []
    for case in cases:
        lines.append(operators(case, arguments.rounds))
        print(lines[-1], flush=True)
    found: Found = [Table(PAGE, "operators", head, lines)]
    if not arguments.operators:
        spark, lines = sp.session("local[2]", "skypane-bench"), []
        for case in cases:
            lines.append(compare(spark, case, arguments.rounds))
            print(lines[-1], flush=True)
        head = ["rows", "keys", "w/s", *(f"{way}, s wall / CPU" for way in WAYS), "times faster, wall", "CPU"]
        head += ["few: times faster, wall", "CPU"]
        found.append(Table(PAGE, "aggregates", head, lines))
    return found


if __name__ == "__main__":
    main()
