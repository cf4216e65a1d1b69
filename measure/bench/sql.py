"""The skyline of a DataFrame by skypane and by Spark SQL's own way, a NOT EXISTS anti-join, in turn.

    python -m measure.bench.sql [--quick]

The anti-join compares every pair of rows; sizes grow until it takes longer than a minute, which the table records.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.tables import markdown_table, replace_between

TOO_LONG = 60.0


def points(spark: SparkSession, rows: int, criteria: int) -> DataFrame:
    """Return independent points, as a view that both ways read; made once."""
    rng = np.random.default_rng(rows)
    table = pa.table({f"c{index}": rng.random(rows) for index in range(criteria)})
    frame = spark.createDataFrame(table).repartition(2).cache()
    frame.count()
    frame.createOrReplaceTempView("points")
    return frame


def anti_join(spark: SparkSession, criteria: int) -> int:
    """Count the skyline as Spark SQL can say it."""
    no_worse = " AND ".join(f"q.c{index} <= p.c{index}" for index in range(criteria))
    better = " OR ".join(f"q.c{index} < p.c{index}" for index in range(criteria))
    query = f"SELECT p.* FROM points p WHERE NOT EXISTS (SELECT 1 FROM points q WHERE {no_worse} AND ({better}))"  # noqa: S608 - numbers only
    return spark.sql(query).count()


def skyline(rows: DataFrame, criteria: int) -> int:
    """Count the skyline by skypane."""
    answers = sp.skyline(rows, sp.from_sense([f"c{index}" for index in range(criteria)], ["min"] * criteria))
    return answers.count()


def timed(run: Callable[[], int]) -> tuple[float, int]:
    """Return seconds and result."""
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing recorded")
    arguments = parser.parse_args()
    spark = sp.session("local[2]", "skypane-bench")
    lines = []
    for criteria in (4, 8):
        skyline(points(spark, 1_000, criteria), criteria)
        slow = False
        for rows in (1_000, 10_000) if arguments.quick else (1_000, 10_000, 30_000, 100_000, 1_000_000):
            lines.append(_compare(spark, rows, criteria, skip_sql=slow))
            slow = slow or float(lines[-1][3].rstrip("s ") if lines[-1][3][0].isdigit() else TOO_LONG) >= TOO_LONG / 10
            print(lines[-1], flush=True)
    head = ["criteria", "rows", "skypane", "anti-join", "times faster", "skyline"]
    table = markdown_table(head, lines)
    if not arguments.quick:
        replace_between(Path("docs/bench-streaming.md"), "sql", table)


def _compare(spark: SparkSession, rows: int, criteria: int, *, skip_sql: bool) -> list[str]:
    frame = points(spark, rows, criteria)
    ours: list[float] = []
    theirs: list[float] = []
    size = 0
    for _ in range(3):
        seconds, size = timed(lambda: skyline(frame, criteria))
        ours.append(seconds)
        if not skip_sql and sum(theirs) < TOO_LONG / 2:
            seconds, count = timed(lambda: anti_join(spark, criteria))
            assert count == size
            theirs.append(seconds)
    frame.unpersist()
    fast = statistics.median(ours)
    head = [str(criteria), f"{rows:,}", f"{fast:.2f} s"]
    if not theirs:
        return [*head, "not tried", "-", f"{size:,}"]
    slow = statistics.median(theirs)
    return [*head, f"{slow:.2f} s", f"{slow / fast:.1f}", f"{size:,}"]


if __name__ == "__main__":
    main()
