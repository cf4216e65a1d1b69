"""Where the shards of a continuous skyline stay between batches on Spark: the CPU time of a step, by design.

    python -m measure.bench.front_residence [--rows 100000 10000 1000 400000] [--batches 5] [--quick]

All designs start from the same stored points near a plane, eight criteria, and take the same batches, of which as many
points expire as come. Each batch's updates must be equal to those of the front in the driver alone. The first WARM_UP
batches of a design do not count, and neither does a smaller first round of all designs. Java goes on compiling what it runs, so
small batches, of which most time is Java's, come after large ones. Figures are medians over the batches of the CPU time on the critical path (measure/residence/critical_path.py).
The tables of the page keep the lines of numbers of rows that are not measured this time.

  driver           one front in the driver, on one core
  threads          shards that stay in threads of the driver (engine/shard_threads.py)
  stateless        tasks that get their shards in files (engine/shard_stage.py)
  at a DataFrame   tasks that find their shard in the Python worker at a persisted partition
  at an RDD        the same, without a plan of Spark SQL
  stateful         a stateful operator of a streaming query
  beside           processes beside the executors
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.front_shards import stream
from measure.residence.beside import BesideExecutors
from measure.residence.critical_path import ShardPool, Spent, spent
from measure.residence.journal import Journal
from measure.residence.one_trip import OneTripFront
from measure.residence.stateful import StatefulOperator
from measure.residence.tasks import TasksOfDataFrame, TasksOfRdd
from measure.results.record import Found, Table
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.placement import DueRows, place_rows
from skypane.operators.fronts import Front, FrontContents, NewPoints
from skypane.operators.fronts.front_operator import Updates
from skypane.operators.fronts.resident_fronts import ResidentFront
from skypane.operators.fronts.sharded_fronts import ShardedFront, dealt
from skypane.operators.fronts.shards import ShardPlan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.shard_stage import ShardClient

WARM_UP: Final = 3
D: Final = 8
REMOTE: Final[dict[str, Any]] = {
    "at a DataFrame": TasksOfDataFrame,
    "at an RDD": TasksOfRdd,
    "stateful": StatefulOperator,
    "beside": BesideExecutors,
}
DESIGNS: Final = ("driver", "threads", "stateless", *REMOTE)
PARTS: Final = ("new rows", "design", "driver", "driver's Java", "slowest executor", "steps repeated")


@dataclass(frozen=True)
class Feed:
    """What a front has stored at first, and the arrivals of each batch, with the clock after it."""

    begin: FrontContents
    batches: Sequence[tuple[NewPoints, int]]
    window: int
    shards: int

    @property
    def rows(self) -> int:
        """Number of new rows in a batch."""
        return len(self.batches[0][0].rows)


@dataclass
class Run:
    """The batches of one design: their updates, their CPU seconds, and the steps that workers had to repeat."""

    updates: list[Updates] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    repeated: int = 0

    def take(
        self,
        step: Callable[[NewPoints, int], Updates],
        feed: Feed,
        only: Collection[int] | None = None,
        pool: ShardPool | None = None,
    ) -> None:
        """Run all batches; `only` and `pool` as for spent()."""
        for arrivals, until in feed.batches:
            updates, seconds = spent(lambda: step(arrivals, until), only, pool)  # noqa: B023 - called at once
            self.updates.append(updates)
            self.spent.append(seconds)

    def milliseconds(self) -> Spent:
        """Return the parts of the batch whose critical path is the median."""
        counted = sorted(self.spent[WARM_UP:], key=lambda seconds: seconds.total)
        return Spent(*(seconds * 1e3 for seconds in counted[len(counted) // 2]))


def run(spark: SparkSession, design: str, feed: Feed) -> Run:
    """Let one design take all batches."""
    one = Run()
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        if design == "driver":
            one.take(Front.restore(feed.begin, feed.window).step, feed, ())
        elif design == "threads":
            pool = ShardPool(feed.shards)
            plan = ShardPlan(feed.shards, in_place=pool)
            one.take(ResidentFront(feed.begin, feed.window, plan).step, feed, (), pool)
        elif design == "stateless":
            one.take(_without_state(spark, feed, folder), feed)
        else:
            journal, parts = Journal(folder, feed.window), dealt(feed.begin, feed.shards)
            journal.begin(parts)
            with closing(REMOTE[design](spark, journal, feed.shards)) as send:
                one.take(OneTripFront(parts, feed.window, send).step, feed, getattr(send, "processes", None))
                one.repeated = send.repeated
    return one


def _without_state(spark: SparkSession, feed: Feed, folder: str) -> Callable[[NewPoints, int], Updates]:
    front, numbers = ShardedFront(feed.begin, feed.window, ShardPlan(feed.shards)), count()

    def step(arrivals: NewPoints, until: int) -> Updates:
        front.rescale(ShardClient(spark, DocumentStore.at(folder), next(numbers)).plan(feed.shards))
        return front.step(arrivals, until)

    return step


def compared(spark: SparkSession, feed: Feed) -> dict[str, Run]:
    """Return the runs of all designs, whose updates are equal."""
    runs: dict[str, Run] = {}
    for design in DESIGNS:
        runs[design] = one = run(spark, design, feed)
        for mine, expected in zip(one.updates, runs["driver"].updates, strict=True):
            assert np.array_equal(mine.rows, expected.rows), design
            assert np.array_equal(mine.times, expected.times), design
            assert np.array_equal(mine.actions, expected.actions), design
        print(f"{feed.rows:,}", design, *(f"{part:.1f}" for part in one.milliseconds()), one.repeated, flush=True)
    return runs


def chosen(feed: Feed, cores: int) -> str:
    """Return where the placement policy takes the rows of a whole front, on a driver with these cores, by default costs."""
    due = DueRows(feed.rows, len(feed.begin.rows), feed.shards, threads=min(feed.shards, cores))
    return place_rows(due, DEFAULT_COSTS).value.where


def line(feed: Feed, runs: dict[str, Run]) -> list[str]:
    """Return the line of a number of rows: each design's critical path, and the choices of the policy."""
    figures = [runs[design].milliseconds().total for design in DESIGNS]
    cells = [f"{feed.rows:,}", *(f"{figure:.3g}" if figure < 100 else f"{figure:.0f}" for figure in figures)]
    return [*cells, chosen(feed, feed.shards), chosen(feed, 1)]


def parts(feed: Feed, runs: dict[str, Run]) -> list[list[str]]:
    """Return a line for each design outside of the driver: of what its critical path consists."""
    found = []
    for design in DESIGNS[2:]:
        figures = runs[design].milliseconds()
        found.append([f"{feed.rows:,}", design, *(f"{part:.1f}" for part in figures), f"{runs[design].repeated}"])
    return found


def feed_of(stored: int, rows: int, batches: int, shards: int) -> Feed:
    """Return a feed of WARM_UP + `batches` batches of `rows` points, with a window of `stored` points."""
    return Feed(*stream(D, stored, rows, WARM_UP + batches), stored, shards)


def session(master: str, shards: int) -> SparkSession:
    """Start a session whose workers find these modules, instead of the one of another benchmark."""
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    settings = {"spark.sql.shuffle.partitions": str(shards), "spark.executorEnv.PYTHONPATH": path}
    return sp.session(master, "skypane-bench", settings)


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few points")
    parser.add_argument("--master", default="local-cluster[4,1,1024]")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--window", type=int, default=100_000, help="points in the window")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 10_000, 1_000, 400_000])
    parser.add_argument("--batches", type=int, default=5)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.rows, arguments.window, arguments.batches = [1_000], 10_000, 1
    spark = session(arguments.master, arguments.shards)
    compared(spark, feed_of(arguments.window // 10, 1_000, 1, arguments.shards))
    lines, of_lines = [], []
    for rows in arguments.rows:
        feed = feed_of(arguments.window, rows, arguments.batches, arguments.shards)
        runs = compared(spark, feed)
        lines.append(line(feed, runs))
        of_lines += parts(feed, runs)
        print(*(table.text for table in tables(lines, of_lines, arguments.shards)), sep="\n", flush=True)
    spark.stop()
    return [*tables(lines, of_lines, arguments.shards)]


def tables(lines: list[list[str]], of_lines: list[list[str]], shards: int) -> list[Table]:
    """Return the tables, by size."""
    policy = [f"the policy says, {cores}" for cores in (f"{shards} cores", "one core")]
    page = "bench-continuous.md"
    return [
        Table(page, "front-residence", ["new rows", *DESIGNS, *policy], by_rows(lines)),
        Table(page, "front-residence-parts", PARTS, by_rows(of_lines)),
    ]


def by_rows(lines: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the lines by their number of rows."""
    return sorted(lines, key=lambda line: int(line[0].replace(",", "")))


if __name__ == "__main__":
    main()
