"""The window-level query: the same operator in the driver, in threads of it or as one Arrow map stage, what is done soonest.

In the driver the two-stack queue outlives a batch: consecutive windows share merges across batches. On the workers
each task takes a run of consecutive windows and shares merges inside it (WIN_RR at the grain of runs); or, with others, a run
whose windows they share by keys.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.control.measured import RunWork
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import DivisibleQuery
from skypane.operators.window_query import WindowQuery, WindowWorker
from skypane.runtime.headroom import SHORTER_WINDOW, for_windows, limited
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialRef
from skypane.runtime.spark.machine.collector import keep_loaded
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError, MemoryLimitError

RefTask = WindowTask[PartialRef]


def in_driver(
    worker: WindowWorker, store: Store, tasks: Sequence[RefTask], schema: pa.Schema
) -> tuple[Answers, tuple[RunWork, ...]]:
    """Answer windows here and now, as one run; `schema` is that of the answers. Returns what it took too."""
    load, began = PartialReader(store.child(PARTIALS)), time.perf_counter()
    with limited("the windows of a batch", SHORTER_WINDOW):
        answers = list(worker.answers(tasks, load))
    busy = time.perf_counter() - began
    done = Answers(
        schema,
        row_count=sum(answer.rows.num_rows for answer in answers),
        windows=tuple((answer.window, answer.rows.num_rows) for answer in answers),
        tables=tuple(answer.rows for answer in answers),
    )
    return done, (RunWork(len(tasks), busy),)


@dataclass(frozen=True, slots=True)
class RunStage:
    """What a task has to know to answer its run of windows, or a part of their keys; travels to the workers.

    Task i has part i % parts of run i // parts.
    """

    query: WindowQuery
    store: Store
    target: Store
    prefix: str
    runs: tuple[tuple[RefTask, ...], ...]
    schema: pa.Schema
    parts: int = 1

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self.runs) * self.parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the tasks whose numbers come in; yield, per task, its file, windows and seconds, or why it has failed."""
        for number in (index for batch in batches for index in batch.column(0).to_pylist()):
            yield pa.RecordBatch.from_pydict({"run": [json.dumps(self.done(number))]})
        keep_loaded(RunStage)

    def done(self, number: int) -> dict[str, Any]:
        """Do a task; return its file, windows and seconds, or why it has failed."""
        name = f"{self.prefix}-{number:05d}-{uuid.uuid4().hex}.parquet"
        windows: list[tuple[int, int]] = []
        failed, began = None, time.perf_counter()
        try:
            with limited("the windows of a task", SHORTER_WINDOW):
                self.target.write_parquet(name, self.schema, self._answers(number, windows))
        except (CheckpointError, MemoryLimitError) as error:  # of an exception Spark would make a page of trace
            failed = [type(error).__name__, str(error)]
        return {"file": name, "windows": windows, "failed": failed, "busy": time.perf_counter() - began}

    def _answers(self, number: int, windows: list[tuple[int, int]]) -> Iterator[pa.Table]:
        """Yield the rows of each window; note its number and row count in `windows`."""
        run, part = divmod(number, self.parts)
        worker, load = self.query.worker(for_windows(SHORTER_WINDOW)), self._loader(part)
        for answer in worker.answers(self.runs[run], load):
            windows.append((answer.window, answer.rows.num_rows))
            yield answer.rows

    def _loader(self, part: int) -> Callable[[PartialRef], pa.Table]:
        """Return what gets the rows of a partial that are of the part."""
        load, query = PartialReader(self.store.child(PARTIALS)), self.query.query
        if self.parts == 1 or not isinstance(query, DivisibleQuery):
            return load
        return lambda ref: query.part_of(load(ref), part, self.parts)


def on_workers(spark: SparkSession, stage: RunStage) -> tuple[Answers, tuple[RunWork, ...]]:
    """Answer windows in one job; the rows stay in files. Returns what each task took too."""
    numbers = spark.range(0, stage.tasks, 1, stage.tasks)
    rows = numbers.mapInArrow(stage, "run string").collect()
    return _told(stage, (json.loads(row.run) for row in rows))


def in_threads(stage: RunStage) -> tuple[Answers, tuple[RunWork, ...]]:
    """Answer windows in threads of this process, each a task: kernels and Arrow let go of the interpreter."""
    with ThreadPoolExecutor(stage.tasks, "skypane-windows") as pool:
        return _told(stage, pool.map(stage.done, range(stage.tasks)))


def _told(stage: RunStage, done: Iterable[dict[str, Any]]) -> tuple[Answers, tuple[RunWork, ...]]:
    runs = sorted(done, key=lambda run: run["file"])
    for kind, why in (run["failed"] for run in runs if run["failed"]):
        raise MemoryLimitError(why) if kind == MemoryLimitError.__name__ else CheckpointError(why)
    windows = together(run["windows"] for run in runs)
    answers = Answers(
        stage.schema,
        row_count=sum(count for _, count in windows),
        windows=windows,
        store=stage.target,
        files=tuple(run["file"] for run in runs),
    )
    return answers, tuple(RunWork(len(run["windows"]), run["busy"]) for run in runs)


def together(told: Iterable[Sequence[Sequence[int]]]) -> tuple[tuple[int, int], ...]:
    """Return the row count of each window, in order: what all tasks that had keys of it have told."""
    counts: dict[int, int] = {}
    for window, count in (pair for windows in told for pair in windows):
        counts[window] = counts.get(window, 0) + count
    return tuple(sorted(counts.items()))


def largest_partial(tasks: Sequence[RefTask]) -> int:
    """Return how many rows the largest of their panes' partials has."""
    return max((ref.rows for task in tasks for _, refs in task.panes for ref in refs), default=0)


def cut(tasks: Sequence[RefTask], runs: int) -> tuple[tuple[RefTask, ...], ...]:
    """Cut windows into `runs` runs of consecutive ones with about the same number of rows to merge."""
    weights = [row_count(task) + 1 for task in tasks]
    total, done = sum(weights), 0
    parts: list[list[RefTask]] = [[] for _ in range(runs)]
    for task, weight in zip(tasks, weights, strict=True):
        parts[min(runs - 1, (done + weight // 2) * runs // total)].append(task)
        done += weight
    return tuple(tuple(part) for part in parts if part)


def distinct_row_count(tasks: Sequence[RefTask]) -> int:
    """Return how many rows the partials of all these windows' panes hold, each pane counted once."""
    panes = {pane: refs for task in tasks for pane, refs in task.panes}
    return sum(ref.rows for refs in panes.values() for ref in refs)


def row_count(task: RefTask) -> int:
    """Return how many rows the partials of a window hold."""
    return sum(ref.rows for _, refs in task.panes for ref in refs)
