"""Check the laws of a sink: after repeated batches, kills, restarts and moves it has each batch exactly once.

def test_my_sink_keeps_the_laws(spark, tmp_path):
    check_sink(spark, MySink, lambda sink: read(sink.path), tmp_path)
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.sink import Sink
from skypane.testing.query_kit import multiset
from skypane.types import CheckpointError

Keeps: TypeAlias = Literal["all", "last", "nothing"]
Make: TypeAlias = Callable[[str], Sink]
Read: TypeAlias = Callable[[Any], pa.Table]

_QUERY: Final = "a query of the kit"
_SECONDS: Final = 120
_KILLED: Final = 1
"""The batch in which a driver is killed; the batch before it is complete."""


def some_rows() -> pa.Table:
    """Return test rows for sinks: times, numbers and texts, some of them null or awkward to write."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "window_start": pa.array(
                [begun + timedelta(minutes=at // 4) for at in range(12)], pa.timestamp("us", "UTC")
            ),
            "city": pa.array(["Oslo", "", None, 'a,b\n"c"'] * 3, pa.string()),
            "n": pa.array([*range(10), None, -(2**62)], pa.int64()),
            "price": pa.array([0.1 * at for at in range(11)] + [None], pa.float64()),
        }
    )


@dataclass(frozen=True)
class SinkTrial:
    """A sink under test: how it is made for a path and how it is read, and the batches to write."""

    spark: SparkSession
    make: Make
    read: Read
    keeps: Keeps
    folder: Path
    batches: tuple[pa.Table, ...]

    def place(self, name: str) -> str:
        """Return the path to which the trial of that name writes."""
        return str(self.folder / name / "out")

    def start(self, name: str, number: int, next_batch: int = 0, query: str = _QUERY) -> StartedSink:
        """Return a new sink there, opened by driver start `number` of a query."""
        sink = self.make(self.place(name))
        return self.opened(sink, name, number, next_batch, query)

    def opened(self, sink: Sink, name: str, number: int, next_batch: int = 0, query: str = _QUERY) -> StartedSink:
        """Open `sink` for driver start `number` of a query, and return it."""
        place = sink.place()
        before = None if place is None or number == 1 else str(place)
        sink.check(self.batches[0].schema)
        sink.open(QueryStart(query, _driver(number), next_batch, before))
        return StartedSink(sink, self, name, _driver(number))

    def expected(self, written: int) -> Counter[str]:
        """Return the rows that the sink must have after the first `written` batches."""
        kept = self.batches[:written] if self.keeps == "all" else self.batches[written - 1 : written]
        return Counter[str]() if self.keeps == "nothing" else sum(map(multiset, kept), Counter())

    def is_as(self, sink: Sink, written: int) -> bool:
        """Return whether a sink has the expected rows after the first `written` batches."""
        return self.keeps == "nothing" or multiset(self.read(sink)) == self.expected(written)


@dataclass(frozen=True)
class StartedSink:
    """A sink that one driver start has opened."""

    sink: Sink
    trial: SinkTrial
    name: str
    driver: str

    def deliver(self, batch_id: int, *, files: bool = False) -> None:
        """Write a batch, with its rows in the driver, or in files of workers where the sink requests them."""
        rows = self.trial.batches[batch_id]
        answers = _in_files(self, rows, batch_id) if files else _in_driver(rows, self.driver, batch_id)
        self.sink.write(self.trial.spark, answers, batch_id)


Law = Callable[[SinkTrial], bool]


def check_sink(
    spark: SparkSession,
    make: Make,
    read: Read,
    folder: Path,
    *,
    rows: pa.Table | None = None,
    keeps: Keeps = "all",
    lasting: bool = True,
    kills: int = 2,
) -> None:
    """Raise AssertionError, which names the law, if a sink breaks one.

    make     returns the sink for a path in `folder`; often the sink's class. It must be importable by name, because
             the drivers that are killed are separate processes
    read     returns the rows that a sink has now, as its users read them
    rows     rows of the answers, for a sink that supports only some types of columns; some_rows() by default
    keeps    whether the sink keeps all batches, only the last one, or, on a terminal, nothing
    lasting  whether the rows are there after a driver restart; False for a sink in memory
    kills    number of drivers that are killed within write(), each at another line of Python; each starts its own Spark
    """
    rows = some_rows() if rows is None else rows
    size = max(rows.num_rows // 3, 1)
    batches = (rows.slice(0, size), rows.slice(size, size), rows.slice(0, 0), rows.slice(2 * size))
    trial = SinkTrial(spark, make, read, keeps, folder, tuple(one.combine_chunks() for one in batches))
    laws = {**LAWS, **(LASTING if lasting else {})}
    for law, holds in laws.items():
        if not holds(trial):
            raise AssertionError(f"{make(trial.place('name'))!r} breaks a law: {law}; the files are in {folder}")
    rng = np.random.default_rng(0)
    for number in range(kills if lasting else 0):
        share = (number + float(rng.random())) / kills
        if not _killed(trial, f"killed {number}", share):
            raise AssertionError(
                f"{make(trial.place('name'))!r} breaks a law: the output of a driver killed in a batch is replaced "
                f"when the batch is repeated; killed at {share:.0%} of a write(), "
                f"the files are in {folder / f'killed {number}'}"
            )


def _driver(number: int) -> str:
    return f"driver-{number:06d}"


def _windows(rows: pa.Table, batch_id: int) -> tuple[tuple[int, int], ...]:
    return ((batch_id, rows.num_rows),) if rows.num_rows else ()


def _in_driver(rows: pa.Table, driver: str, batch_id: int) -> BatchRows:
    return BatchRows(rows.schema, rows.num_rows, _windows(rows, batch_id), (rows,), driver=driver)


def _in_files(started: StartedSink, rows: pa.Table, batch_id: int) -> BatchRows:
    """Return the batch as two files, the first with one row; as no files if the batch has no rows."""
    store = started.sink.stage(started.driver)
    if store is None:
        store = DocumentStore.at(str(started.trial.folder / started.name / "answers"))
        store.make()
    parts = [part for part in (rows.slice(0, 1), rows.slice(1)) if part.num_rows]
    names = tuple(f"run-{batch_id}-{at}.parquet" for at in range(len(parts)))
    for name, part in zip(names, parts, strict=True):
        store.write_parquet(name, rows.schema, [part])
    windows = _windows(rows, batch_id)
    return BatchRows(rows.schema, rows.num_rows, windows, store=store, files=names, driver=started.driver)


def _once(trial: SinkTrial) -> bool:
    """Write each batch once, from the driver and from files of workers; the third batch has no rows."""
    return all(_each_once(trial, name, files=files) for name, files in (("once", False), ("once in files", True)))


def _each_once(trial: SinkTrial, name: str, *, files: bool) -> bool:
    started = trial.start(name, 1)
    for number in range(len(trial.batches)):
        started.deliver(number, files=files)
        kept = number if trial.keeps == "last" and not trial.batches[number].num_rows else number + 1
        if not (trial.is_as(started.sink, number + 1) or trial.is_as(started.sink, kept)):
            return False
    return True


def _twice(trial: SinkTrial) -> bool:
    return _both_ways(trial, trial.start("twice", 1))


def _both_ways(trial: SinkTrial, started: StartedSink) -> bool:
    """Write each batch twice, from the driver and from files, in both orders."""
    for number in range(len(trial.batches)):
        for files in (bool(number % 2), not number % 2):
            started.deliver(number, files=files)
    return trial.is_as(started.sink, len(trial.batches))


def _rejected(trial: SinkTrial) -> bool:
    sink = trial.make(trial.place("rejected")).for_rejected()
    return _both_ways(trial, trial.opened(sink, "rejected", 1))


def _again(trial: SinkTrial) -> bool:
    """Use one driver start per batch; each start first repeats the last batch of the one before."""
    for number in range(len(trial.batches)):
        started = trial.start("again", number + 1, max(number - 1, 0))
        if number:
            started.deliver(number - 1, files=True)
        started.deliver(number)
    return trial.is_as(started.sink, len(trial.batches))


def _moved(trial: SinkTrial) -> bool:
    """Move the sink's folder with its files between two driver starts; sinks without a folder pass."""
    started = trial.start("first place", 1)
    if started.sink.place() is None:
        return True
    for number in range(2):
        started.deliver(number)
    Path(trial.place("second place")).parent.mkdir()
    shutil.move(trial.place("first place"), trial.place("second place"))
    sink = trial.make(trial.place("second place"))
    sink.check(trial.batches[0].schema)
    sink.open(QueryStart(_QUERY, _driver(2), 2, trial.place("first place")))
    later = StartedSink(sink, trial, "second place", _driver(2))
    for number in range(1, len(trial.batches)):
        later.deliver(number)
    return trial.is_as(sink, len(trial.batches))


def _refused(trial: SinkTrial) -> bool:
    """Open the folder of another query; sinks without a folder pass."""
    started = trial.start("mine", 1)
    if started.sink.place() is None:
        return True
    started.deliver(0)
    try:
        trial.start("mine", 1, query="another query")
    except CheckpointError:
        return trial.is_as(started.sink, 1)
    return False


def _killed(trial: SinkTrial, name: str, share: float) -> bool:
    """Kill a driver in its second batch; the next driver repeats that batch and continues."""
    process = multiprocessing.get_context("spawn").Process(
        target=_until_killed, args=(trial.make, trial.place(name), trial.batches, share), name="skypane-killed"
    )
    process.start()
    process.join(_SECONDS)
    if process.exitcode != -signal.SIGKILL:
        process.kill()
        raise AssertionError(
            f"the driver that should have been killed ended with exit code {process.exitcode}; see its output"
        )
    started = trial.start(name, 2, _KILLED)
    for number in range(_KILLED, len(trial.batches)):
        started.deliver(number)
    return trial.is_as(started.sink, len(trial.batches))


def _until_killed(make: Make, place: str, batches: Sequence[pa.Table], share: float) -> None:
    """Write batches, and kill this process in the last, at `share` of the lines that the batch before it took."""
    spark = session("local[1]", "skypane-killed", {"spark.ui.enabled": "false"})
    sink = make(place)
    sink.check(batches[0].schema)
    sink.open(QueryStart(_QUERY, _driver(1)))
    lines = _Lines(None)
    for number, rows in enumerate(batches[: _KILLED + 1]):
        lines = _Lines(round(share * lines.seen) if number == _KILLED else None)
        sys.settrace(lines.of)
        sink.write(spark, _in_driver(rows, _driver(1), number), number)
        sys.settrace(None)
    os.kill(os.getpid(), signal.SIGKILL)


class _Lines:
    """Counts the lines of Python that are run, and kills the process at a given one, like a failing machine."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.seen = 0

    def of(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - what sys.settrace calls
        if event == "line":
            self.seen += 1
            if self.last is not None and self.seen > self.last:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.of


LAWS: Final[dict[str, Law]] = {
    "a sink has the rows of each batch, from the driver or from files of workers; an empty batch adds none": _once,
    "a batch that is written twice is there once, from the driver and from files of workers": _twice,
    "rejected rows are written like answers": _rejected,
}
"""Laws of every sink."""

LASTING: Final[dict[str, Law]] = {
    "a driver continues where the one before it ended, and may repeat its last batch": _again,
    "a folder that was moved with its files can be used further": _moved,
    "a folder belongs to one query only": _refused,
}
"""Further laws of sinks whose rows outlive the process that has written them."""
