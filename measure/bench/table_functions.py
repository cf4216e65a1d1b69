"""Queries as table functions of SQL and by the DataFrame API, in turn, over the same cached table.

    python -m measure.bench.table_functions [--quick]

Prints the median seconds of both, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.bench.cached_rows import cached_rows
from measure.results.record import Found, Table

CRITERIA: Final = "c0 MIN, c1 MIN, c2 MIN, c3 MIN"
WINDOWS: Final = "time => 'ts', window => '10 minutes', slide => '2 minutes'"
ROUNDS: Final = 5

QUERIES: Final[Mapping[str, tuple[str, Callable[[DataFrame], DataFrame]]]] = {
    "skyline, one partition": (
        f"skypane_skyline(TABLE(points), '{CRITERIA}')",
        lambda rows: sp.skyline(rows, CRITERIA),
    ),
    "skyline, reduced by a first call": (
        f"skypane_skyline(TABLE(SELECT * FROM skypane_skyline(TABLE(points), '{CRITERIA}', local => true)), '{CRITERIA}')",  # noqa: S608
        lambda rows: sp.skyline(rows, CRITERIA),
    ),
    "skyline of 100 groups": (
        f"skypane_skyline(TABLE(points), '{CRITERIA}', by => 'key')",
        lambda rows: sp.skyline(rows, CRITERIA, by="key"),
    ),
    "top 10, one partition": (
        "skypane_top_k(TABLE(points), 10, 'c0 - c1')",
        lambda rows: sp.top_k(rows, 10, "c0 - c1"),
    ),
    "aggregates of 100 keys": (
        "skypane_aggregate(TABLE(points), 'count(*) AS n, sum(c0) AS total', by => 'key')",
        lambda rows: sp.aggregate(rows, by="key", n=sp.count(), total=sp.sum("c0")),
    ),
    "aggregates of 100 keys, sliding windows": (
        f"skypane_aggregate(TABLE(points), 'count(*) AS n, sum(c0) AS total', by => 'key', {WINDOWS})",
        lambda rows: sp.aggregate(
            rows, by="key", n=sp.count(), total=sp.sum("c0"), time="ts", window="10 minutes", slide="2 minutes"
        ),
    ),
}


def points(spark: SparkSession, rows: int) -> DataFrame:
    """Return independent points of two hours, as a view that both ways read; made once."""
    rng = np.random.default_rng(rows)
    columns = {f"c{index}": rng.random(rows) for index in range(4)}
    times = pa.array(np.sort(rng.integers(0, 7_200_000_000, rows))).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "key": rng.integers(0, 100, rows), **columns})
    frame = cached_rows(spark, table, 4)
    frame.createOrReplaceTempView("points")
    return frame


def seconds(run: Callable[[], DataFrame]) -> tuple[float, int]:
    """Return seconds and number of answers of a query, planning included."""
    began = time.perf_counter()
    answers = run().count()
    return time.perf_counter() - began, answers


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows")
    quick = parser.parse_args(argv).quick
    spark = sp.session()
    sp.register(spark)
    rows = points(spark, 20_000 if quick else 1_000_000)
    lines = []
    for name, (call, in_python) in QUERIES.items():
        in_sql, by_api = [], []
        for _ in range(1 + (1 if quick else ROUNDS)):  # the first one compiles
            taken, found = seconds(lambda call=call: spark.sql(f"SELECT * FROM {call}"))  # type: ignore[misc] # noqa: S608
            in_sql.append(taken)
            taken, wanted = seconds(lambda in_python=in_python: in_python(rows))  # type: ignore[misc]
            by_api.append(taken)
            if found != wanted:
                raise SystemExit(f"{name}: {found} answers in SQL, {wanted} by the DataFrame API")
        both = statistics.median(in_sql[1:]), statistics.median(by_api[1:])
        lines.append((name, *(f"{one:.2f}" for one in both), f"{both[0] / both[1]:.1f}"))
        print(*lines[-1], sep="; ", flush=True)
    head = ["query over a million rows", "SQL, s", "DataFrame API, s", "ratio"]
    return [Table("sql.md", "table functions", head, lines)]


if __name__ == "__main__":
    main()
