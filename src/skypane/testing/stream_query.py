"""A query over a stream without Java, run as Structured Streaming runs it: batches are noted before they begin.

    <checkpoint>/metadata            the id of the query
    <checkpoint>/offsets/<batch>     how many tables were there after it, when it began
    <checkpoint>/commits/<batch>     the batch is done; one that was begun and is not done comes again

Each file appears whole, and once: of two drivers, one has noted a batch, and both go by what stands there.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Self

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from skypane.locations import Location
from skypane.runtime.spark.engine.reading_order import UNIT
from skypane.testing.frames import Frame, Tasks, name_of
from skypane.types import ConfigError

POLL: Final = 0.01
"""Seconds between looks for further batches, as in Spark."""

_UNIT: Final = pa.field(UNIT, pa.int64())

Batches = Callable[[DataFrame, int], Any]


@dataclass(frozen=True)
class BatchLog:
    """Which tables are in which batch of a query, and which batches are done, in the folder of its checkpoint."""

    folder: Path

    def taken(self) -> int:
        """Return how many tables are in batches that are done."""
        return self._end(max(_numbers(self.folder / "commits"), default=-1))

    def next(self, known: int, at_once: Callable[[], int]) -> tuple[int, int, int] | None:
        """Return number, first and last table of the next batch, which is noted; None without a table that is not done."""
        begun, done = _numbers(self.folder / "offsets"), _numbers(self.folder / "commits")
        number = begun[-1] if begun and (not done or done[-1] < begun[-1]) else len(begun)
        if number == len(begun):
            start = self._end(number - 1)
            if start >= known:
                return None
            _put(self.folder / "metadata", [{"id": str(uuid.uuid4())}])
            times = {"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": {}}
            end = min(start + max(1, at_once()), known)
            _put(self.folder / "offsets" / str(number), ["v1", times, {"tables": end}])
        return number, self._end(number - 1), self._end(number)

    def done(self, number: int) -> None:
        _put(self.folder / "commits" / str(number), ["v1", {"nextBatchWatermarkMs": 0}])

    def _end(self, number: int) -> int:
        if number < 0:
            return 0
        *_, offset = (self.folder / "offsets" / str(number)).read_text(encoding="ascii").splitlines()
        return int(json.loads(offset)["tables"])


def _numbers(log: Path) -> list[int]:
    return sorted(int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal())


def _put(path: Path, lines: list[Any]) -> None:
    """Write a file, whole, unless it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    draft.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="ascii")
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()


def _ignored(_rows: DataFrame, _number: int) -> None:
    """Take a batch of a query without foreachBatch()."""


class StreamFrame(Frame):
    """A stream: `batches` are the tables that have come so far, of which a query takes `at_once` in each micro-batch."""

    def __init__(
        self, session: Tasks, schema: pa.Schema, batches: Sequence[pa.Table], at_once: Callable[[], int]
    ) -> None:
        super().__init__(session, [schema.empty_table()])
        self.batches, self.at_once = batches, at_once

    @property
    def isStreaming(self) -> bool:
        return True

    @property
    def writeStream(self) -> StreamWriter:  # type: ignore[override]
        return StreamWriter(self)

    def select(self, *columns: Any) -> StreamFrame:
        names = [name_of(column) for column in columns]
        schema = pa.schema([self.arrow_schema.field(name) for name in names])
        return StreamFrame(self.sparkSession, schema, self.batches, self.at_once)

    def selectExpr(self, *_: str) -> StreamFrame:  # type: ignore[override]
        """Mark each row with its unit: they are of one, in the order of the tables."""
        return StreamFrame(self.sparkSession, self.arrow_schema.append(_UNIT), self.batches, self.at_once)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return []

    def _read(self, number: int) -> pa.Table:
        """Return a table with the columns of the stream."""
        table = self.batches[number]
        if _UNIT.name in self.columns:
            table = table.append_column(_UNIT, pa.array([0] * table.num_rows, _UNIT.type))
        if missing := [name for name in self.columns if name not in table.column_names]:
            raise ConfigError(f"batch {number} has no column {', '.join(map(repr, missing))}: give all the same schema")
        return table.select(self.columns)

    def micro_batch(self, begin: int, end: int) -> Frame:
        """Return the rows of the tables from `begin` to before `end`, cut into partitions by the session's chance."""
        tables = [self._read(number) for number in range(begin, end)]
        rows = pa.concat_tables([self.arrow_schema.empty_table(), *(table.cast(self.arrow_schema) for table in tables)])
        return Frame(self.sparkSession, self.sparkSession.cut(rows))


class StreamWriter:
    """Builds a query, as DataStreamWriter does."""

    def __init__(self, rows: StreamFrame) -> None:
        self._rows = rows
        self._batches: Batches = _ignored
        self._options: dict[str, Any] = {}

    def foreachBatch(self, func: Batches) -> Self:
        self._batches = func
        return self

    def option(self, key: str, value: Any) -> Self:
        self._options[key] = value
        return self

    def queryName(self, queryName: str) -> Self:
        return self.option("name", queryName)

    def trigger(self, **trigger: Any) -> Self:
        return self.option("ends", bool(trigger.get("availableNow")))

    def start(self) -> StreamQuery:
        place = Location.of(self._options["checkpointLocation"], "checkpoint")
        log = BatchLog(Path(place.path))
        query = StreamQuery(
            self._rows, self._batches, log, ends=self._options.get("ends", False), name=self._options.get("name")
        )
        query.thread.start()
        return query


@dataclass
class StreamQuery:
    """A query that runs in a thread: what skypane requests of Spark's StreamingQuery."""

    rows: StreamFrame
    batches: Batches
    log: BatchLog
    ends: bool
    name: str | None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    lastProgress: dict[str, Any] | None = None  # noqa: N815 - PySpark's name

    def __post_init__(self) -> None:
        self.thread = Thread(target=self._run, name="skypane stream without Java", daemon=True)
        self._stopping, self._is_running, self._has_rows = Event(), False, False
        self._error: BaseException | None = None
        self._ended = Event()

    @property
    def isActive(self) -> bool:
        return not self._ended.is_set() and not self._stopping.is_set()

    @property
    def status(self) -> dict[str, Any]:
        message = "Processing new data" if self._is_running else "Waiting for data to arrive"
        return {
            "message": message if self.isActive else "Stopped",
            "isDataAvailable": self._has_rows,
            "isTriggerActive": self._is_running,
        }

    def stop(self) -> None:
        """Stop after the running batch."""
        self._stopping.set()
        if self.thread.is_alive():
            self._ended.wait()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait for the end, at most `timeout` seconds; raise StreamingQueryException if a batch has failed."""
        ended = self._ended.wait(timeout)
        if (failure := self.exception()) is not None:
            raise failure from self._error
        return None if timeout is None else ended

    def exception(self) -> StreamingQueryException | None:
        return None if self._error is None else StreamingQueryException(f"[STREAM_FAILED] {self._error}")

    def processAllAvailable(self) -> None:
        """Wait until the tables that are there now are done."""
        wanted = len(self.rows.batches)
        while not self._ended.wait(POLL) and self.log.taken() < wanted:
            pass

    def _run(self) -> None:
        try:
            self._take(len(self.rows.batches) if self.ends else None)
        except BaseException as error:  # noqa: BLE001 - awaitTermination() raises it
            if not self._stopping.is_set():
                self._error = error
        finally:
            self._is_running = False
            self._ended.set()

    def _take(self, last: int | None) -> None:
        """Take batch after batch until the query is stopped; with `last`, until so many tables are done."""
        while not self._stopping.is_set():
            known = len(self.rows.batches) if last is None else last
            batch = self.log.next(known, self.rows.at_once)
            self._has_rows = self._is_running = batch is not None
            if batch is not None:
                number, begin, end = batch
                self.batches(self.rows.micro_batch(begin, end), number)
                self.log.done(number)
                self._report(end, known)
            elif last is not None:
                return
            else:
                self._stopping.wait(POLL)

    def _report(self, end: int, known: int) -> None:
        """Report how many tables are in batches, of those that were there when the last batch was planned."""
        offsets = {"endOffset": {"tables": end}, "latestOffset": {"tables": known}}
        self.lastProgress = {"sources": [{"description": "skypane.testing", **offsets}]}
