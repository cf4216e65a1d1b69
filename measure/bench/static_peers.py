"""The skyline of a cached DataFrame by skypane, by peers in Spark's Python workers, and by Spark SQL, in turn.

    python -m measure.bench.static_peers [--quick] [--rounds 5]

A peer computes the skyline of each partition in mapInPandas or mapInArrow, and that of what is left in one more task.
All are run in turn in one session, so that each round sees the same machine; times are medians over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from unittest.mock import patch

import moocore
import numpy as np
import pandas as pd
import paretoset
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.bench.cached_rows import cached_rows
from measure.bench.sql import in_sql
from measure.results.record import Found, Table
from skypane.control.static_way import StaticWay
from skypane.runtime.spark import batch

PAGE: Final = "bench-streaming.md"


@dataclass(frozen=True, slots=True)
class Case:
    """A number of rows and of criteria, and how the criteria are related."""

    rows: int
    criteria: int
    anticorrelated: bool = False

    def points(self) -> NDArray[np.float64]:
        """Return the points, the same ones each time."""
        points = np.random.default_rng(self.rows).random((self.rows, self.criteria))
        if self.anticorrelated:  # near the plane on which all sums are equal
            points -= (points.sum(axis=1, keepdims=True) - self.criteria / 2) * 0.9 / self.criteria
        return points

    @property
    def columns(self) -> list[str]:
        return [f"c{index}" for index in range(self.criteria)]

    @property
    def kind(self) -> str:
        return "anticorrelated" if self.anticorrelated else "independent"


CASES: Final = (
    Case(10_000, 4), Case(20_000, 4), Case(50_000, 4), Case(100_000, 4), Case(1_000_000, 4), Case(5_000_000, 4),
    Case(5_000_000, 2), Case(1_000_000, 6), Case(1_000_000, 6, anticorrelated=True), Case(1_000_000, 8),
)  # fmt: skip
QUICK: Final = (Case(10_000, 4), Case(100_000, 2), Case(20_000, 3, anticorrelated=True))


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to count the skyline of a DataFrame, and the cases in which it takes part."""

    name: str
    count: Callable[[DataFrame, Case], int]
    takes_part: Callable[[Case], bool] = lambda _: True


def skypane(rows: DataFrame, case: Case) -> int:
    """Count by skypane, in the way that it chooses."""
    return sp.skyline(rows, sp.from_sense(case.columns, ["min"] * case.criteria)).count()


def skypane_in_tasks(rows: DataFrame, case: Case) -> int:
    """Count by skypane with all rows sent to Python."""
    with _way("tasks"):
        answer = sp.skyline(rows, sp.from_sense(case.columns, ["min"] * case.criteria))
    return answer.count()


@contextmanager
def _way(way: StaticWay) -> Iterator[None]:
    with patch.object(batch, "static_way", lambda *_: way):
        yield


def by_paretoset(rows: DataFrame, case: Case) -> int:
    """Count by paretoset in mapInPandas."""
    del case

    def best(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        frame = pd.concat(list(frames), ignore_index=True)
        if len(frame):
            yield frame[paretoset.paretoset(frame.to_numpy(), distinct=False, use_numba=True)]

    return rows.mapInPandas(best, rows.schema).repartition(1).mapInPandas(best, rows.schema).count()


def by_moocore(rows: DataFrame, case: Case) -> int:
    """Count by moocore in mapInArrow."""
    del case

    def best(table: pa.Table) -> pa.Table:
        points = np.column_stack([column.to_numpy() for column in table.columns])
        return table.filter(pa.array(moocore.is_nondominated(points, keep_weakly=True)))

    return _in_arrow(rows, best).count()


def by_polars(rows: DataFrame, case: Case) -> int:
    """Count by polars in mapInArrow: two criteria, without ties in the first one."""
    del case

    def best(table: pa.Table) -> pa.Table:
        before = pl.col("c1").cum_min().shift(1)
        return pl.DataFrame(table).sort("c0").filter(before.is_null() | (pl.col("c1") < before)).to_arrow()

    return _in_arrow(rows, best).count()


def _in_arrow(rows: DataFrame, best: Callable[[pa.Table], pa.Table]) -> DataFrame:
    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        came = list(batches)
        if came:
            yield from best(pa.Table.from_batches(came)).cast(came[0].schema).to_batches()

    return rows.mapInArrow(each, rows.schema).repartition(1).mapInArrow(each, rows.schema)


def by_not_exists(rows: DataFrame, case: Case) -> int:
    """Count by Spark SQL's anti-join."""
    rows.createOrReplaceTempView("points")
    return int(rows.sparkSession.sql(in_sql(case.columns)).collect()[0][0])


CONTESTANTS: Final = (
    Contestant("skypane", skypane),
    Contestant("all rows sent", skypane_in_tasks),
    Contestant("mapInPandas, paretoset", by_paretoset, lambda case: case.criteria < 8 and not case.anticorrelated),
    Contestant("mapInArrow, moocore", by_moocore),
    Contestant("mapInArrow, polars", by_polars, lambda case: case.criteria == 2),
    Contestant("NOT EXISTS", by_not_exists, lambda case: case.rows <= 100_000),
)


def frame(spark: SparkSession, case: Case) -> DataFrame:
    """Return the rows of a case, in memory, in as many partitions as tasks."""
    table = pa.table(dict(zip(case.columns, case.points().T, strict=True)))
    return cached_rows(spark, table, 2)


def measured(rows: DataFrame, case: Case, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each contestant, in rounds; one round before them is not counted."""
    running = [one for one in CONTESTANTS if one.takes_part(case)]
    seconds: dict[str, list[float]] = {one.name: [] for one in running}
    counts = set()
    for number in range(rounds + 1):
        for one in running:
            began = time.perf_counter()
            counts.add(one.count(rows, case))
            if number:
                seconds[one.name].append(time.perf_counter() - began)
    if len(counts) != 1:
        raise AssertionError(f"the contestants count different skylines of {case}: {sorted(counts)}")
    return seconds


def line(case: Case, seconds: dict[str, list[float]]) -> list[str]:
    """Return a line of the table: the seconds of skypane, and how many times as many each other one takes."""
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ours = medians["skypane"]
    others = (f"{medians[one.name] / ours:.1f}" if one.name in medians else "-" for one in CONTESTANTS[1:])
    return [f"{case.rows:,}", f"{case.criteria}", case.kind, f"{ours:.2f} s", *others]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are counted")
    arguments = parser.parse_args(argv)
    spark = sp.session("local[2]", "skypane-bench")
    lines = []
    for case in QUICK if arguments.quick else CASES:
        rows = frame(spark, case)
        lines.append(line(case, measured(rows, case, arguments.rounds)))
        rows.unpersist()
        print(lines[-1], flush=True)
    head = ["rows", "criteria", "data", "skypane", *(f"/ {one.name}" for one in CONTESTANTS[1:])]
    return [Table(PAGE, "static peers", head, lines)]


if __name__ == "__main__":
    main()
