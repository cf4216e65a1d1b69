"""Measure this machine's costs of the operations between which the control policies choose.

job        one Spark job with a Python stage, over almost no rows
exchange   the transfer of rows to Python after an exchange, less the same transfer without one, in alternation
window     windows answered in the driver from partials in files, with few rows and with many
front      rows added to a front that stores few rows, and to one that stores many
group      rows added to fronts of sixteen points, to few fronts and to many
shard      points written for a shard and read again, few and many
comparison windows that overlap, so that each row is compared for all of them at once, with few rows and with many
division   partials of a table of sums, of which a task keeps its keys, with few rows and with many
threads    windows answered in threads, less the same windows in the driver, in alternation
shard      few rows added to a front of few rows whose shards are in threads, less the same to a whole front, in
threads    alternation
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from skypane.control.costs import Costs
from skypane.control.fitting import Timing, fit
from skypane.control.window_division import fixed_division
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.constructors import count
from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import FrontContents, NewPoints
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.resident_fronts import ResidentFront
from skypane.operators.open_panes import WindowTask
from skypane.operators.skyline import Skyline
from skypane.operators.window_query import WindowQuery
from skypane.preference import from_sense
from skypane.runtime.machine_costs import Machine, read
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials, wlq
from skypane.runtime.spark.engine.partials import PARTIALS, attempt_name
from skypane.runtime.spark.engine.shard_stage import round_trip
from skypane.runtime.spark.engine.shard_threads import ShardThreads
from skypane.runtime.spark.machine.session import parallelism, threads
from skypane.runtime.spark.versions import partitioned
from skypane.types import FloatArray
from skypane.windows import Windows

CRITERIA = 8
EXCHANGED = (50_000, 1_000_000)
"""Rows of an exchange."""
MERGED = (50, 5_000)
"""Rows of each of the two partials of a window."""
WINDOWS = 20
STORED = (1_000, 50_000)
"""Rows stored in a front."""
COMING = 2_000
SHARDS = 2
FEW = 100
"""Rows of a step in which next to nothing is compared."""
OVERLAP = 5
DIVIDED = (10_000, 400_000)
"""Rows of a partial of which a task keeps the keys of its part."""


def machine_of(spark: SparkSession) -> Machine:
    """Return the machine on which a session runs."""
    return machine_of_master(spark.conf.get("spark.master", "") or "")


def machine_of_master(master: str) -> Machine:
    """Return the machine on which a session of this master runs; local masters differ by their number of threads."""
    local = master.startswith("local")
    return Machine.this(pyspark.__version__, f"local[{threads(master)}]" if local else master)


def costs_of(spark: SparkSession) -> Costs:
    """Return the costs measured on the machine of a classic session, or the defaults."""
    return read(machine_of(spark))


def calibrate(
    spark: SparkSession,
    *,
    rounds: int = 5,
    exchanged: tuple[int, ...] = EXCHANGED,
    merged: tuple[int, ...] = MERGED,
    stored: tuple[int, ...] = STORED,
    divided: tuple[int, ...] = DIVIDED,
) -> Costs:
    """Measure each operation `rounds` times, and return the costs fitted to the medians."""
    timings = [
        Timing("job", 1, 0, _median(rounds * 3, lambda: _into_python(spark.range(parallelism(spark))))),
        *(_exchange(spark, row_count, rounds) for row_count in exchanged),
        *(_windows(row_count, rounds) for row_count in merged),
        *(_front(row_count, rounds) for row_count in stored),
        *(_group(row_count, rounds) for row_count in stored),
        *(_shard(row_count, rounds) for row_count in stored),
        *(_comparison(row_count, rounds) for row_count in merged),
        *(_division(row_count, rounds) for row_count in divided),
        Timing("threads", 1, 0, _threads(min(merged), rounds * 3)),
        Timing("shard threads", 1, 0, _shard_threads(rounds * 3)),
    ]
    machine = machine_of(spark)
    return fit(timings, f"{machine.cores} cores, {machine.master}, {time.strftime('%Y-%m-%d')}, skypane calibrate")


def _exchange(spark: SparkSession, row_count: int, rounds: int) -> Timing:
    tasks = parallelism(spark)
    rows = spark.range(0, row_count, 1, tasks)
    rows = rows.selectExpr("id", *(f"rand({column}) as c{column}" for column in range(CRITERIA)))
    exchanged = partitioned(rows, tasks, (rows.id % tasks).cast("int"))
    differences = []
    for _ in range(rounds + 1):
        without = _seconds(lambda: _into_python(rows))
        differences.append(_seconds(lambda: _into_python(exchanged)) - without)
    return Timing("exchange", 1, row_count, median(differences[1:]))  # the first round includes one-time setup


@dataclass(frozen=True)
class _Windows:
    """Windows of skylines, with two partials a pane, in files of a folder."""

    query: WindowQuery
    store: DocumentStore
    tasks: Sequence[wlq.RefTask]
    schema: pa.Schema
    row_count: int

    @classmethod
    def of(cls, folder: str, row_count: int, overlap: int = 1) -> Self:
        """Return WINDOWS windows, each of which adds a pane with partials of `row_count` rows."""
        names, rng = [f"c{column}" for column in range(CRITERIA)], np.random.default_rng(row_count)
        skyline = Skyline(from_sense(names, ["min"] * len(names)))
        query = WindowQuery(skyline, Windows(overlap, 1), None)
        lifted = [skyline.lift(pa.table({name: rng.random(row_count) for name in names})) for _ in range(2)]
        store = DocumentStore.at(folder)
        store.child(PARTIALS).make()
        refs = tuple(partials.write(store.child(PARTIALS), attempt_name(0, 0), lifted))
        tasks = [
            WindowTask(window, tuple((pane, refs) for pane in query.windows.panes_of(window)))
            for window in range(WINDOWS)
        ]
        panes = WINDOWS + overlap - 1
        rows = panes * sum(partial.num_rows for partial in lifted)
        return cls(query, store, tasks, query.output_schema(lifted[0].schema), rows)

    def in_driver(self) -> None:
        wlq.in_driver(self.query.worker(), self.store, self.tasks, self.schema)

    def in_threads(self) -> None:
        division = fixed_division(wlq.sizes_of(self.tasks), 2)
        tasks = tuple(self.tasks)
        wlq.in_threads(wlq.WindowStage(self.query, self.store, self.store, "threads", tasks, self.schema, division))


def _windows(row_count: int, rounds: int) -> Timing:
    """Return the time to answer windows of one pane each, with two partials per pane."""
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        windows = _Windows.of(folder, row_count)
        return Timing("window", WINDOWS, windows.row_count, _median(rounds, windows.in_driver))


def _comparison(row_count: int, rounds: int) -> Timing:
    """Return the time to answer windows that overlap."""
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        windows = _Windows.of(folder, row_count, OVERLAP)
        return Timing("comparison", WINDOWS, windows.row_count, _median(rounds, windows.in_driver))


def _threads(row_count: int, rounds: int) -> float:
    """Return the seconds that threads add to windows of few rows, which they answer one at a time."""
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        windows = _Windows.of(folder, row_count, OVERLAP)
        return median(_seconds(windows.in_threads) - _seconds(windows.in_driver) for _ in range(rounds))


def _division(row_count: int, rounds: int) -> Timing:
    """Return the time to keep half of the keys of a partial."""
    query = Aggregate("key", n=count())
    partial = query.lift(pa.table({"key": np.arange(row_count)}))
    return Timing("division", 1, row_count, _median(rounds, lambda: query.part_of(partial, 0, 2)))


def _front(row_count: int, rounds: int) -> Timing:
    """Return the time to add COMING rows to a front of `row_count` rows; no row dominates another."""
    points = _incomparable(row_count + COMING)
    times = np.arange(len(points))
    stored = FrontContents(points[:row_count], times[:row_count], times[:row_count], times[:row_count], row_count)
    coming = NewPoints(points[row_count:], times[row_count:], times[row_count:])
    seconds = []
    for _ in range(rounds + 1):
        front = Front.restore(stored, 2 * len(points))
        seconds.append(_seconds(lambda: front.step(coming, len(points))))  # noqa: B023 - called here and now
    return Timing("front", COMING, COMING * (row_count + COMING // 2), median(seconds[1:]))


def _shard_threads(rounds: int) -> float:
    """Return the seconds that threads add to a step of a front that stores few rows."""
    points, times = _incomparable(min(STORED) + FEW * rounds), np.arange(min(STORED) + FEW * rounds)
    whole = Front(points.shape[1], 2 * len(points))
    whole.step(NewPoints(points, times, times).at(slice(min(STORED))), min(STORED))
    resident = ResidentFront(whole.snapshot(), whole.window, ShardThreads().plan(SHARDS))
    differences = []
    for begin in range(min(STORED), len(points), FEW):
        until = begin + FEW
        coming = NewPoints(points, times, times).at(slice(begin, until))
        seconds = [_seconds(lambda: front.step(coming, until)) for front in (whole, resident)]  # noqa: B023 - at once
        differences.append(seconds[1] - seconds[0])
    return median(differences)


def _group(row_count: int, rounds: int) -> Timing:
    """Return the time to add `row_count` rows to fronts of sixteen points each, `row_count` points together."""
    points, times = _incomparable(2 * row_count), np.arange(2 * row_count)
    groups = times % max(1, row_count // 16)
    arrived = times[:row_count]
    stored = FrontContents(points[:row_count], arrived, arrived, arrived, row_count, groups[:row_count])
    coming = NewPoints(points[row_count:], times[row_count:], times[row_count:], groups[row_count:])
    seconds = []
    for _ in range(rounds + 1):
        fronts = GroupedFronts.restore(stored, 4 * row_count)
        seconds.append(_seconds(lambda: fronts.step(coming, 2 * row_count)))  # noqa: B023 - at once
    return Timing("group", 1, row_count, median(seconds[1:]))


def _shard(row_count: int, rounds: int) -> Timing:
    """Return the time to write points for a shard and to read them again."""
    points, times = _incomparable(row_count), np.arange(row_count)
    with tempfile.TemporaryDirectory(prefix="skypane-calibrate-") as folder:
        store = DocumentStore.at(folder)
        return Timing(
            "shard",
            1,
            row_count,
            _median(rounds, lambda: round_trip(store, FrontContents(points, times, times, times, 0))),
        )


def _incomparable(n: int) -> FloatArray:
    """Return points none of which dominates another: the last of five criteria offsets the sum of the others."""
    points = np.random.default_rng(n).random((n, 5))
    points[:, 4] = -points[:, :4].sum(axis=1)
    return points


def _into_python(rows: DataFrame) -> None:
    rows.mapInArrow(_counted, "n long").collect()


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def _median(rounds: int, operation: Callable[[], object]) -> float:
    """Return the median seconds of an operation, after one run as warm-up."""
    operation()
    return median(_seconds(operation) for _ in range(rounds))


def _seconds(operation: Callable[[], object]) -> float:
    began = time.perf_counter()
    operation()
    return time.perf_counter() - began
