"""The costs of the machine at hand: the moves between which the laws of control choose, made and timed.

job        one of Spark's jobs with a Python stage, over next to no rows
exchange   the same rows into Python with an exchange before it, less the same without one, in turn
window     windows answered in the driver, from partials in files, of few rows and of many
front      rows that come to a front with few stored, and with many
group      rows that come to fronts of sixteen points, to few and to many
shard      points written for a shard and read, few and many
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from statistics import median

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from skypane.control.costs import Costs
from skypane.control.fitting import Timing, fit
from skypane.operators.continuous.front import Arrivals, Front, Stored
from skypane.operators.continuous.groups import GroupedFronts
from skypane.operators.open_panes import WindowTask
from skypane.operators.skyline import Skyline
from skypane.operators.window_query import WindowQuery
from skypane.preference import from_sense
from skypane.runtime.machine_costs import Machine, read
from skypane.runtime.spark.engine import partials, wlq
from skypane.runtime.spark.engine.partials import PARTIALS, attempt_name
from skypane.runtime.spark.engine.sharding import handed_over
from skypane.runtime.spark.machine.session import parallelism, threads
from skypane.runtime.spark.store import Store
from skypane.runtime.spark.versions import partitioned
from skypane.types import FloatArray
from skypane.windows import Windows

CRITERIA = 8
EXCHANGED = (50_000, 1_000_000)
"""Rows of an exchange."""
MERGED = (50, 5_000)
"""Rows of each of the two partials that a window is merged from."""
WINDOWS = 20
STORED = (1_000, 50_000)
"""Rows of a front."""
COMING = 2_000


def machine_of(spark: SparkSession) -> Machine:
    """Return the machine that a session runs on."""
    return machine_of_master(spark.conf.get("spark.master", "") or "")


def machine_of_master(master: str) -> Machine:
    """Return the machine that a session of this master would run on; a local master counts by its number of threads."""
    local = master.startswith("local")
    return Machine.this(pyspark.__version__, f"local[{threads(master)}]" if local else master)


def costs_of(spark: SparkSession) -> Costs:
    """Return the costs that were measured on the machine of a session, or the defaults."""
    return read(machine_of(spark))


def calibrate(
    spark: SparkSession,
    *,
    rounds: int = 5,
    exchanged: tuple[int, ...] = EXCHANGED,
    merged: tuple[int, ...] = MERGED,
    stored: tuple[int, ...] = STORED,
) -> Costs:
    """Measure each move `rounds` times, and return the costs fitted to the medians."""
    timings = [
        Timing("job", 1, 0, _median(rounds * 3, lambda: _into_python(spark.range(parallelism(spark))))),
        *(_exchange(spark, row_count, rounds) for row_count in exchanged),
        *(_windows(row_count, rounds) for row_count in merged),
        *(_front(row_count, rounds) for row_count in stored),
        *(_group(row_count, rounds) for row_count in stored),
        *(_shard(row_count, rounds) for row_count in stored),
    ]
    machine = machine_of(spark)
    return fit(timings, f"{machine.cores} cores, {machine.master}, {time.strftime('%Y-%m-%d')}, skypane calibrate")


def _exchange(spark: SparkSession, row_count: int, rounds: int) -> Timing:
    tasks = parallelism(spark)
    rows = spark.range(0, row_count, 1, tasks)
    rows = rows.selectExpr("id", *(f"rand({column}) as c{column}" for column in range(CRITERIA)))
    moved = partitioned(rows, tasks, (rows.id % tasks).cast("int"))
    differences = []
    for _ in range(rounds + 1):
        stayed = _seconds(lambda: _into_python(rows))
        differences.append(_seconds(lambda: _into_python(moved)) - stayed)
    return Timing("exchange", 1, row_count, median(differences[1:]))  # the first pays for what is made once


def _windows(row_count: int, rounds: int) -> Timing:
    """Return how long windows take of one pane each, which lies in two partials."""
    names = [f"c{column}" for column in range(CRITERIA)]
    query = Skyline(from_sense(names, ["min"] * len(names)))
    window_query = WindowQuery(query, Windows(1, 1), None)
    rng = np.random.default_rng(row_count)
    lifted = [query.lift(pa.table({name: rng.random(row_count) for name in names})) for _ in range(2)]
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        store = Store.at(folder)
        store.child(PARTIALS).make()
        refs = partials.write(store.child(PARTIALS), attempt_name(0, 0), lifted)
        tasks = [WindowTask(window, ((window, tuple(refs)),)) for window in range(WINDOWS)]
        schema = window_query.output_schema(lifted[0].schema)
        seconds = _median(rounds, lambda: wlq.in_driver(window_query.worker(), store, tasks, schema))
    return Timing("window", WINDOWS, WINDOWS * sum(partial.num_rows for partial in lifted), seconds)


def _front(row_count: int, rounds: int) -> Timing:
    """Return how long a front of so many rows takes for those that come; none dominates another."""
    points = _incomparable(row_count + COMING)
    times = np.arange(len(points))
    stored = Stored(points[:row_count], times[:row_count], times[:row_count], times[:row_count], row_count)
    coming = Arrivals(points[row_count:], times[row_count:], times[row_count:])
    seconds = []
    for _ in range(rounds + 1):
        front = Front.restore(stored, 2 * len(points))
        seconds.append(_seconds(lambda: front.step(coming, len(points))))  # noqa: B023 - called here and now
    return Timing("front", COMING, COMING * (row_count + COMING // 2), median(seconds[1:]))


def _group(row_count: int, rounds: int) -> Timing:
    """Return how long rows take that come to fronts of as many, sixteen points each."""
    points, times = _incomparable(2 * row_count), np.arange(2 * row_count)
    groups = times % max(1, row_count // 16)
    stored = Stored(points[:row_count], times[:row_count], times[:row_count], times[:row_count], row_count)
    coming = Arrivals(points[row_count:], times[row_count:], times[row_count:])
    seconds = []
    for _ in range(rounds + 1):
        fronts = GroupedFronts.restore(stored, groups[:row_count], 4 * row_count)
        seconds.append(_seconds(lambda: fronts.step(coming, groups[row_count:], 2 * row_count)))  # noqa: B023 - at once
    return Timing("group", 1, row_count, median(seconds[1:]))


def _shard(row_count: int, rounds: int) -> Timing:
    """Return how long it takes to hand points to a task, and its answer back."""
    points, times = _incomparable(row_count), np.arange(row_count)
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        store = Store.at(folder)
        return Timing(
            "shard", 1, row_count, _median(rounds, lambda: handed_over(store, Stored(points, times, times, times, 0)))
        )


def _incomparable(n: int) -> FloatArray:
    """Return points of five criteria, of which the last makes up for the others."""
    points = np.random.default_rng(n).random((n, 5))
    points[:, 4] = -points[:, :4].sum(axis=1)
    return points


def _into_python(rows: DataFrame) -> None:
    rows.mapInArrow(_counted, "n long").collect()


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def _median(rounds: int, move: Callable[[], object]) -> float:
    """Return the median seconds of a move that was made once before."""
    move()
    return median(_seconds(move) for _ in range(rounds))


def _seconds(move: Callable[[], object]) -> float:
    began = time.perf_counter()
    move()
    return time.perf_counter() - began
