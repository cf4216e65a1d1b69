"""The laws of a sink: told twice, killed, started again, moved, it ends up as if each batch had been told once.

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

from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.claim import Claim
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

Keeps: TypeAlias = Literal["all", "last", "nothing"]
Make: TypeAlias = Callable[[str], Sink]
Read: TypeAlias = Callable[[Any], pa.Table]

_QUERY: Final = "a query of the kit"
_SECONDS: Final = 120
_KILLED: Final = 1
"""The batch in which a driver is killed; the one before it is whole."""


def some_rows() -> pa.Table:
    """Return rows to tell sinks: times, numbers and texts, of which some are null, and some awkward to write."""
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
class Trial:
    """A sink to be tried: how it is made at a place, how it is read, and the batches that it is told."""

    spark: SparkSession
    make: Make
    read: Read
    keeps: Keeps
    folder: Path
    batches: tuple[pa.Table, ...]

    def place(self, name: str) -> str:
        """Return where a trial of that name writes."""
        return str(self.folder / name / "out")

    def start(self, name: str, number: int, next_batch: int = 0, query: str = _QUERY) -> Started:
        """Return the sink there, as start `number` of a query opens it."""
        sink = self.make(self.place(name))
        return self.opened(sink, name, number, next_batch, query)

    def opened(self, sink: Sink, name: str, number: int, next_batch: int = 0, query: str = _QUERY) -> Started:
        """Return a sink that was opened."""
        place = sink.place()
        before = None if place is None or number == 1 else str(place)
        sink.check(self.batches[0].schema)
        sink.open(Claim(query, _driver(number), next_batch, before))
        return Started(sink, self, name, _driver(number))

    def expected(self, told: int) -> Counter[str]:
        """Return the rows that are to be there when so many batches were told."""
        kept = self.batches[:told] if self.keeps == "all" else self.batches[told - 1 : told]
        return Counter[str]() if self.keeps == "nothing" else sum(map(_multiset, kept), Counter())

    def is_as(self, sink: Sink, told: int) -> bool:
        """Return whether a sink has what it is to have, when so many batches were told."""
        return self.keeps == "nothing" or _multiset(self.read(sink)) == self.expected(told)


@dataclass(frozen=True)
class Started:
    """A sink that one start of a query has opened."""

    sink: Sink
    trial: Trial
    name: str
    driver: str

    def tell(self, batch_id: int, *, files: bool = False) -> None:
        """Tell it a batch: from the driver, or in files that workers wrote where the sink wants them."""
        rows = self.trial.batches[batch_id]
        answers = _in_files(self, rows, batch_id) if files else _in_driver(rows, self.driver, batch_id)
        self.sink.write(self.trial.spark, answers, batch_id)


Law = Callable[[Trial], bool]


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
    """Raise AssertionError, naming the law, if a sink breaks one.

    make     returns the sink that writes at a place, a path in `folder`: often the sink's class. Drivers that are killed
             are processes of their own, so a module has to have it, by name
    read     returns the rows that a sink has now, as those read them who use them
    rows     of the answers, for a sink that holds some kinds of columns only; some_rows(), if left out
    keeps    whether all batches are to be there, the last one alone, or, on a terminal, nothing
    lasting  whether what was written is there for the next start; False of a sink in memory
    kills    drivers that are killed within write(), each at another line of Python; each starts a Spark of its own
    """
    rows = some_rows() if rows is None else rows
    size = max(rows.num_rows // 3, 1)
    batches = (rows.slice(0, size), rows.slice(size, size), rows.slice(0, 0), rows.slice(2 * size))
    trial = Trial(spark, make, read, keeps, folder, tuple(one.combine_chunks() for one in batches))
    laws = {**LAWS, **(LASTING if lasting else {})}
    for law, holds in laws.items():
        if not holds(trial):
            raise AssertionError(f"{make(trial.place('name'))!r} breaks a law: {law}; seen in {folder}")
    rng = np.random.default_rng(0)
    for number in range(kills if lasting else 0):
        share = (number + float(rng.random())) / kills
        if not _killed(trial, f"killed {number}", share):
            raise AssertionError(
                f"{make(trial.place('name'))!r} breaks a law: what a driver left that was killed in a batch is replaced when "
                f"the batch comes again; seen in {folder / f'killed {number}'}, killed at {share:.0%} of a write()"
            )


def _driver(number: int) -> str:
    return f"driver-{number:06d}"


def _multiset(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def _windows(rows: pa.Table, batch_id: int) -> tuple[tuple[int, int], ...]:
    return ((batch_id, rows.num_rows),) if rows.num_rows else ()


def _in_driver(rows: pa.Table, driver: str, batch_id: int) -> Answers:
    return Answers(rows.schema, rows.num_rows, _windows(rows, batch_id), (rows,), driver=driver)


def _in_files(started: Started, rows: pa.Table, batch_id: int) -> Answers:
    """Two files, of which the first has a row at least; as many as none of a batch without rows."""
    store = started.sink.stage(started.driver)
    if store is None:
        store = Store.at(str(started.trial.folder / started.name / "answers"))
        store.make()
    parts = [part for part in (rows.slice(0, 1), rows.slice(1)) if part.num_rows]
    names = tuple(f"run-{batch_id}-{at}.parquet" for at in range(len(parts)))
    for name, part in zip(names, parts, strict=True):
        store.write_parquet(name, rows.schema, [part])
    windows = _windows(rows, batch_id)
    return Answers(rows.schema, rows.num_rows, windows, store=store, files=names, driver=started.driver)


def _once(trial: Trial) -> bool:
    """Each batch once, from the driver, or in files of workers; the third has no rows."""
    return all(_each_once(trial, name, files=files) for name, files in (("once", False), ("once in files", True)))


def _each_once(trial: Trial, name: str, *, files: bool) -> bool:
    started = trial.start(name, 1)
    for number in range(len(trial.batches)):
        started.tell(number, files=files)
        kept = number if trial.keeps == "last" and not trial.batches[number].num_rows else number + 1
        if not (trial.is_as(started.sink, number + 1) or trial.is_as(started.sink, kept)):
            return False
    return True


def _twice(trial: Trial) -> bool:
    return _both_ways(trial, trial.start("twice", 1))


def _both_ways(trial: Trial, started: Started) -> bool:
    """From the driver and in files, in both orders."""
    for number in range(len(trial.batches)):
        for files in (bool(number % 2), not number % 2):
            started.tell(number, files=files)
    return trial.is_as(started.sink, len(trial.batches))


def _rejected(trial: Trial) -> bool:
    sink = trial.make(trial.place("rejected")).for_rejected()
    return _both_ways(trial, trial.opened(sink, "rejected", 1))


def _again(trial: Trial) -> bool:
    """The last batch of a start is told again by the next one, which goes on from there; one start for each batch."""
    for number in range(len(trial.batches)):
        started = trial.start("again", number + 1, max(number - 1, 0))
        if number:
            started.tell(number - 1, files=True)
        started.tell(number)
    return trial.is_as(started.sink, len(trial.batches))


def _moved(trial: Trial) -> bool:
    """Where the sink needs a folder for itself: the folder is renamed between two starts, with all that is in it."""
    started = trial.start("first place", 1)
    if started.sink.place() is None:
        return True
    for number in range(2):
        started.tell(number)
    Path(trial.place("second place")).parent.mkdir()
    shutil.move(trial.place("first place"), trial.place("second place"))
    sink = trial.make(trial.place("second place"))
    sink.open(Claim(_QUERY, _driver(2), 2, trial.place("first place")))
    later = Started(sink, trial, "second place", _driver(2))
    for number in range(1, len(trial.batches)):
        later.tell(number)
    return trial.is_as(sink, len(trial.batches))


def _refused(trial: Trial) -> bool:
    """Where the sink needs a folder for itself."""
    started = trial.start("mine", 1)
    if started.sink.place() is None:
        return True
    started.tell(0)
    try:
        trial.start("mine", 1, query="another query")
    except CheckpointError:
        return trial.is_as(started.sink, 1)
    return False


def _killed(trial: Trial, name: str, share: float) -> bool:
    """A driver is killed in its second batch; the next start tells that batch again, and goes on."""
    process = multiprocessing.get_context("spawn").Process(
        target=_until_killed, args=(trial.make, trial.place(name), trial.batches, share), name="skypane-killed"
    )
    process.start()
    process.join(_SECONDS)
    if process.exitcode != -signal.SIGKILL:
        process.kill()
        raise AssertionError(
            f"the driver that was to be killed ended by itself, with {process.exitcode}: see its output"
        )
    started = trial.start(name, 2, _KILLED)
    for number in range(_KILLED, len(trial.batches)):
        started.tell(number)
    return trial.is_as(started.sink, len(trial.batches))


def _until_killed(make: Make, place: str, batches: Sequence[pa.Table], share: float) -> None:
    """Tell a sink batches up to the one in which this process ends at `share` of the lines that the one before took."""
    spark = session("local[1]", "skypane-killed", {"spark.ui.enabled": "false"})
    sink = make(place)
    sink.open(Claim(_QUERY, _driver(1)))
    lines = _Lines(None)
    for number, rows in enumerate(batches[: _KILLED + 1]):
        lines = _Lines(round(share * lines.seen) if number == _KILLED else None)
        sys.settrace(lines.of)
        sink.write(spark, _in_driver(rows, _driver(1), number), number)
        sys.settrace(None)
    os.kill(os.getpid(), signal.SIGKILL)


class _Lines:
    """Counts lines of Python that are run; ends the process, as a machine that fails does, at one of them."""

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
    "what was told is there, from the driver or in files of workers; of a batch without rows nothing": _once,
    "a batch that is told twice is there once, from the driver and in files of workers": _twice,
    "rejected rows are kept like answers": _rejected,
}
"""What holds for every sink."""

LASTING: Final[dict[str, Law]] = {
    "a start goes on where the one before ended, and its last batch may come again": _again,
    "a folder that was moved with its files is gone on with": _moved,
    "a folder is one query's alone": _refused,
}
"""What holds for sinks whose rows are there after the process that wrote them."""
