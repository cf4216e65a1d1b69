"""The window-level query: one operator that runs in the driver, in threads of it, or as an Arrow map stage.

In the driver the two-stack queue outlives a batch, so consecutive windows share merges across batches. On the workers
each task takes pieces: runs of consecutive windows, which share merges inside a run, or parts of their keys
(control/window_division.py).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.control.measurements import PieceWork, RunWork
from skypane.control.window_division import Division, Piece
from skypane.control.window_work import DueRuns, WindowSize
from skypane.operators.answer_changes import answers_of
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import DivisibleQuery
from skypane.operators.window_query import StayAnswer, WindowQuery, WindowWorker
from skypane.runtime.memory_headroom import SHORTER_WINDOW, for_windows, limited
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialReference
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError, MemoryLimitError

RefTask = WindowTask[PartialReference]


def in_driver(
    worker: WindowWorker,
    store: DocumentStore,
    tasks: Sequence[RefTask],
    schema: pa.Schema,
    again: Sequence[RefTask] = (),
    early: Sequence[RefTask] = (),
) -> tuple[BatchRows, DividedWork]:
    """Answer windows in this thread, as one run; return the answers, whose schema is `schema`, and the work.

    again   windows before those of `tasks` that are answered again
    early   windows after those of `tasks` that are answered before their end
    """
    load, began = PartialReader(store.child(PARTIALS)), time.perf_counter()
    if worker.query.stays:
        with limited("the windows of a batch", SHORTER_WINDOW):
            found = [*worker.stays(tasks, load)]
        return _as_stays(schema, found), DividedWork((RunWork(len(tasks), time.perf_counter() - began),))
    with limited("the windows of a batch", SHORTER_WINDOW):
        # The worker keeps merges of panes, and those of early windows are not complete.
        each = ((worker.anew(len(again)), again), (worker, tasks), (worker.anew(len(early)), early))
        answers = [answer for one, some in each for answer in answers_of(one, some, load)]
    busy = time.perf_counter() - began
    windows = tuple((answer.window, answer.rows.num_rows) for answer in answers)
    tables = tuple(answer.rows for answer in answers)
    done = BatchRows(schema, row_count=sum(table.num_rows for table in tables), windows=windows, tables=tables)
    return done, DividedWork((RunWork(len(windows), busy),))


def _as_stays(schema: pa.Schema, found: Sequence[StayAnswer]) -> BatchRows:
    windows = tuple(pair for some in found for pair in some.windows)
    tables = tuple(some.rows for some in found)
    return BatchRows(schema, row_count=sum(table.num_rows for table in tables), windows=windows, tables=tables)


def with_empty_versions(answers: BatchRows, query: WindowQuery, tasks: Iterable[RefTask], prefix: str) -> BatchRows:
    """Return answers with a row for each version of `tasks` that has none, which readers would not see otherwise.

    Only after all filters, and after all tasks, is it known which versions have no rows. Windows that are answered once
    and changes have no such rows.

    prefix   the start of the name of a file with these rows
    """
    if not query.versioned or query.changes:
        return answers
    empty = {window for window, count in answers.windows if not count}
    rows = [query.nothing(task, answers.schema) for task in tasks if task.window in empty]
    if not rows:
        return answers
    row_count = answers.row_count + len(rows)
    if answers.store is None:
        return replace(answers, row_count=row_count, tables=(*answers.tables, *rows))
    name = file_name(prefix, len(answers.files))
    answers.store.write_parquet(name, answers.schema, rows)
    return replace(answers, row_count=row_count, files=(*answers.files, name))


def file_name(prefix: str, place: int) -> str:
    """Return a new name of a file that is read after those of lower places."""
    return f"{prefix}-{place:05d}-{uuid.uuid4().hex}.parquet"


@dataclass(frozen=True, slots=True)
class WindowStage:
    """Answers windows, or parts of their keys, task by task; travels to the workers."""

    query: WindowQuery
    store: DocumentStore
    target: DocumentStore
    prefix: str
    windows: tuple[RefTask, ...]
    schema: pa.Schema
    division: Division

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.division.tasks)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the tasks whose numbers are received; yield the windows, files and seconds of each, or why it failed."""
        for number in (index for batch in batches for index in batch.column(0).to_pylist()):
            yield pa.RecordBatch.from_pydict({"run": [json.dumps(self.done(number))]})
        keep_loaded(WindowStage)

    def done(self, number: int) -> dict[str, Any]:
        """Run a task; return the windows, file and seconds of each piece, and the seconds of all, or why it failed."""
        windows: list[tuple[int, int]] = []
        files: list[tuple[str, float, int]] = []
        failed, began, cpu = None, time.perf_counter(), time.thread_time()
        try:
            with limited("the windows of a task", SHORTER_WINDOW):
                places = {piece: place for place, piece in enumerate(sorted(self.division.pieces))}
                files.extend(self._written(piece, places[piece], windows) for piece in self.division.tasks[number])
        except (CheckpointError, MemoryLimitError) as error:  # Spark would turn an exception into a page of trace
            failed = [type(error).__name__, str(error)]
        seconds = {"busy": time.perf_counter() - began, "cpu": time.thread_time() - cpu}
        return {"task": number, "windows": windows, "failed": failed, **seconds, "files": files}

    def _written(self, piece: Piece, place: int, windows: list[tuple[int, int]]) -> tuple[str, float, int]:
        """Write the answers of a piece; return the file, whose name has its place among all pieces, seconds and rows."""
        name, began, counts = file_name(self.prefix, place), time.perf_counter(), []

        def counted() -> Iterator[pa.Table]:
            for table in self._answers(piece, windows):
                counts.append(table.num_rows)
                yield table

        self.target.write_parquet(name, self.schema, counted())
        return name, time.perf_counter() - began, sum(counts)

    def _answers(self, piece: Piece, windows: list[tuple[int, int]]) -> Iterator[pa.Table]:
        """Yield the rows of each window of a piece, and append its number and row count to `windows`."""
        tasks, load = self.windows[piece.begin : piece.end], self._loader(piece)
        worker = self.query.worker(for_windows(SHORTER_WINDOW), len(tasks))
        if self.query.stays:
            for some in worker.stays(tasks, load):
                windows.extend(some.windows)
                yield some.rows
            return
        for answer in answers_of(worker, tasks, load):
            windows.append((answer.window, answer.rows.num_rows))
            yield answer.rows

    def _loader(self, piece: Piece) -> Callable[[PartialReference], pa.Table]:
        """Return a function that loads the rows of a partial whose keys belong to the piece."""
        load, query = PartialReader(self.store.child(PARTIALS)), self.query.query
        if piece.parts == 1 or not isinstance(query, DivisibleQuery):
            return load
        return lambda ref: query.part_of(load(ref), piece.part, piece.parts)


@dataclass(frozen=True, slots=True)
class DividedWork:
    """The work of tasks: windows and seconds of each task, and seconds of each of its pieces."""

    runs: tuple[RunWork, ...]
    pieces: tuple[PieceWork, ...] = ()


def on_workers(spark: SparkSession, stage: WindowStage) -> tuple[BatchRows, DividedWork]:
    """Answer windows in one job, whose rows stay in files; return the answers, and the work."""
    numbers = spark.range(0, stage.tasks, 1, stage.tasks)
    rows = numbers.mapInArrow(stage, "run string").collect()
    return _merged_reports(stage, (json.loads(row.run) for row in rows))


def in_threads(stage: WindowStage) -> tuple[BatchRows, DividedWork]:
    """Answer windows in threads of this process, one per task; kernels and Arrow release the interpreter lock."""
    with ThreadPoolExecutor(stage.tasks, "skypane-windows") as pool:
        return _merged_reports(stage, pool.map(stage.done, range(stage.tasks)))


def _merged_reports(stage: WindowStage, reports: Iterable[dict[str, Any]]) -> tuple[BatchRows, DividedWork]:
    runs = sorted(reports, key=lambda run: run["task"])
    for kind, why in (run["failed"] for run in runs if run["failed"]):
        raise MemoryLimitError(why) if kind == MemoryLimitError.__name__ else CheckpointError(why)
    windows = together(run["windows"] for run in runs)
    written = [file for run in runs for file in run["files"]]
    answers = BatchRows(
        stage.schema,
        row_count=sum(rows for _, _, rows in written),
        windows=windows,
        store=stage.target,
        files=tuple(sorted(name for name, _, _ in written)),
    )
    work = tuple(RunWork(len(run["windows"]), run["busy"], run["cpu"]) for run in runs)
    sizes = DueRuns(sizes_of(stage.windows))
    pieces = zip(stage.division.pieces, written, strict=True)
    return answers, DividedWork(work, tuple(_piece_work(piece, sizes, seconds) for piece, (_, seconds, _) in pieces))


def _piece_work(piece: Piece, sizes: DueRuns, seconds: float) -> PieceWork:
    work = sizes.work(piece.begin, piece.end, piece.parts)
    return PieceWork(piece.begin, piece.end, piece.part, work, seconds)


def together(reports: Iterable[Sequence[Sequence[int]]]) -> tuple[tuple[int, int], ...]:
    """Return each window with its row count, summed over the tasks that answered keys of it, in order of windows."""
    counts: dict[int, int] = {}
    for window, count in (pair for windows in reports for pair in windows):
        counts[window] = counts.get(window, 0) + count
    return tuple(sorted(counts.items()))


def largest_partial(tasks: Sequence[RefTask]) -> int:
    """Return the row count of the largest partial of the windows' panes."""
    return max((ref.rows for task in tasks for _, refs in task.panes for ref in refs), default=0)


def sizes_of(tasks: Sequence[RefTask]) -> tuple[WindowSize, ...]:
    """Return the rows of each window, and those in panes that the window before it does not hold in the same form."""
    before: frozenset[tuple[int, tuple[PartialReference, ...]]] = frozenset()
    sizes = []
    for task in tasks:
        rows = {pane: sum(ref.rows for ref in pane[1]) for pane in task.panes}
        sizes.append(WindowSize(sum(rows.values()), sum(rows[pane] for pane in rows.keys() - before)))
        before = frozenset(task.panes)
    return tuple(sizes)


def distinct_row_count(tasks: Sequence[RefTask], after: int | None = None) -> int:
    """Return the number of rows in the partials of the windows' panes, each counted once; only of panes after one."""
    panes = {pane: refs for task in tasks for pane, refs in task.panes if after is None or pane > after}
    return sum(ref.rows for refs in panes.values() for ref in refs)
