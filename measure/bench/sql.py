"""The skyline of a table by skypane, by SQL's own way in Spark and in DuckDB (NOT EXISTS), and by moocore, in turn.

    python -m measure.bench.sql [--quick]

NOT EXISTS compares pairs of rows; a way that took longer than six seconds is not run on more rows of as many criteria. The table is in
memory beforehand: cached by Spark, in DuckDB's own format, as an array for moocore. Each way counts the rows of the skyline, and
all counts must be equal.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import moocore
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.bench.cached_rows import cached_rows
from measure.processes import cpu_seconds
from measure.results.record import Comparison, Found, Table, Times
from skypane.types import FloatArray

TOO_LONG: Final = 6.0
ROWS: Final = (1_000, 10_000, 30_000, 100_000, 1_000_000)
CHARTED: Final = (10_000, 100_000, 1_000_000)
"""Sizes that the performance page shows."""
OURS: Final = "skypane"


@dataclass(frozen=True)
class Points:
    """The same points in the form of each way."""

    spark: SparkSession
    frame: DataFrame
    database: duckdb.DuckDBPyConnection
    array: FloatArray

    @classmethod
    def make(cls, spark: SparkSession, rows: int, criteria: int) -> Points:
        """Return independent points, which Spark and DuckDB know as `points`."""
        array = np.random.default_rng(rows).random((rows, criteria))
        table = pa.table({name: array[:, index] for index, name in enumerate(_names(criteria))})
        frame = cached_rows(spark, table, 2)
        frame.createOrReplaceTempView("points")
        database = duckdb.connect(config={"threads": 2})
        database.register("given", table)
        database.execute("CREATE TABLE points AS SELECT * FROM given")
        return cls(spark, frame, database, array)

    @property
    def names(self) -> list[str]:
        """The criteria."""
        return _names(self.array.shape[1])

    def close(self) -> None:
        """Forget the points."""
        self.frame.unpersist()
        self.database.close()


def _names(criteria: int) -> list[str]:
    return [f"c{index}" for index in range(criteria)]


def in_sql(names: Sequence[str]) -> str:
    """Return the statement that counts the skyline."""
    no_worse = " AND ".join(f"q.{name} <= p.{name}" for name in names)
    better = " OR ".join(f"q.{name} < p.{name}" for name in names)
    return f"SELECT count(*) FROM points p WHERE NOT EXISTS (SELECT 1 FROM points q WHERE {no_worse} AND ({better}))"  # noqa: S608 - names of ours


def by_skypane(points: Points) -> int:
    """Count by skypane, on Spark."""
    return sp.skyline(points.frame, sp.from_sense(points.names, ["min"] * len(points.names))).count()


def by_spark(points: Points) -> int:
    """Count as Spark SQL can say it."""
    (row,) = points.spark.sql(in_sql(points.names)).collect()
    return int(row[0])


def by_duckdb(points: Points) -> int:
    """Count as DuckDB can say it."""
    found = points.database.execute(in_sql(points.names)).fetchone()
    assert found is not None
    return int(found[0])


def by_moocore(points: Points) -> int:
    """Count by a library in C, without Spark."""
    return int(np.count_nonzero(moocore.is_nondominated(points.array, keep_weakly=True)))


WAYS: Final[Mapping[str, Callable[[Points], int]]] = {
    OURS: by_skypane,
    "Spark, NOT EXISTS": by_spark,
    "DuckDB, NOT EXISTS": by_duckdb,
    "moocore": by_moocore,
}


def warm_up(spark: SparkSession, criteria: int) -> None:
    """Run each way once: a first run, in which Java compiles, does not show how slow a way is."""
    points = Points.make(spark, ROWS[0], criteria)
    for way in WAYS.values():
        way(points)
    points.close()


def compare(spark: SparkSession, rows: int, criteria: int, rounds: int, slow: set[str]) -> tuple[Comparison, int]:
    """Return the rounds of all ways that are not too slow, and the number of rows in the skyline; add those that are now to `slow`."""
    points = Points.make(spark, rows, criteria)
    sides: dict[str, list[Times]] = {}
    sizes: set[int] = set()
    for turn in range(rounds + 1):
        for name, way in WAYS.items():
            if name in slow:
                continue
            cpu, began = cpu_seconds(), time.perf_counter()
            sizes.add(way(points))
            times = Times(time.perf_counter() - began, cpu_seconds() - cpu)
            assert len(sizes) == 1, f"{name} counts other rows: {sizes}"
            if turn or (times.wall > TOO_LONG and name != OURS):  # the first round of a fast way is its warm-up
                sides.setdefault(name, []).append(times)
            if times.wall > TOO_LONG and name != OURS:
                slow.add(name)
    points.close()
    missing = {name: "it took too long with fewer rows" for name in WAYS if name not in sides}
    return Comparison(
        "skyline of a table", f"{criteria} criteria, {rows:,} rows", rows, OURS, sides, missing
    ), sizes.pop()


def line(criteria: int, found: Comparison, size: int) -> list[str]:
    """Return a line of the table."""
    seconds = [f"{found.wall(name):.2f} s" if name in found.sides else "-" for name in WAYS]
    others = [f"{found.ratio(name):.1f}" if name in found.sides else "-" for name in WAYS if name != OURS]
    return [str(criteria), f"{found.rows_of(OURS):,}", *seconds, *others, f"{size:,}"]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the table and the comparisons of some sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    spark = sp.session("local[2]", "skypane-bench")
    lines, comparisons = [], []
    for criteria in (4, 8):
        slow: set[str] = set()
        warm_up(spark, criteria)
        for rows in ROWS[:2] if arguments.quick else ROWS:
            found, size = compare(spark, rows, criteria, 1 if arguments.quick else arguments.rounds, slow)
            lines.append(line(criteria, found, size))
            print(lines[-1], flush=True)
            if rows in CHARTED:
                comparisons.append(found)
    others = [f"times faster than {name}" for name in WAYS if name != OURS]
    table = Table("bench-streaming.md", "sql", ["criteria", "rows", *WAYS, *others, "skyline"], lines)
    return [table, *comparisons]


if __name__ == "__main__":
    main()
