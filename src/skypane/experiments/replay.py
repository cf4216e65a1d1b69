"""A recorded table as a stream: rows come by their arrival times, as fast as a speed-up says, resumable at any row.

`skypane-replay` is a Python data source of Spark's own kind (pyspark.sql.datasource). Its offset is a row number, so a
restarted query goes on where the last committed batch ended, and a replayed batch holds the same rows.

    arrival time   |--a--b-----c-d--------e-->          rows of one file, ascending
    wall clock     |--a-b--c-d--e->                     speedup times faster, counted from the row a run starts at

The first trigger of each run brings one row only. It starts Spark's Python workers, whose seconds would otherwise
become days of arrivals at once; the clock starts after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from skypane.types import ConfigError, IntArray

FORMAT = "skypane-replay"
#: rows per record batch: small enough to slice cheaply, large enough for Arrow
CHUNK_ROWS = 8192


def write_recording(table: pa.Table, path: Path) -> None:
    """Write `table`, already in the order of arrival, as the Arrow file that the source reads; atomically."""
    table = table.cast(pa.schema([_as_in_spark(field) for field in table.schema]))
    part = path.with_name(path.name + ".part")
    with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=CHUNK_ROWS)
    part.replace(path)


def _as_in_spark(field: pa.Field) -> pa.Field:
    """Return the field as Spark insists on it when a source hands over Arrow: microseconds, UTC."""
    if not pa.types.is_timestamp(field.type):
        return field
    return field.with_type(pa.timestamp("us", "UTC" if field.type.tz is not None else None))


def replay(spark: SparkSession, path: Path, *, arrival: str, speedup: float | None = None) -> DataFrame:
    """Return the recording at `path` as a streaming DataFrame, `speedup` times faster than it happened.

    With no speed-up all rows are there at once, and the trigger decides. `arrival` names the timestamp column whose
    order the rows have.
    """
    spark.dataSource.register(ReplaySource)
    reader = spark.readStream.format(FORMAT).option("path", str(path.resolve())).option("arrival", arrival)
    if speedup is not None:
        reader = reader.option("speedup", speedup)
    return reader.load()


def due(arrivals: IntArray, start: int, elapsed: float, speedup: float) -> int:
    """Return the first row that has not come `elapsed` seconds after row `start` did, at `speedup`.

    `arrivals` are ascending microseconds.
    """
    if start >= len(arrivals):
        return len(arrivals)
    clock = int(arrivals[start]) + round(elapsed * speedup * 1e6)
    return max(start, int(np.searchsorted(arrivals, clock, side="right")))


@dataclass(frozen=True)
class Recording:
    """An Arrow file in order of arrival, mapped into memory by each process that reads it."""

    path: str
    arrival: str | None = None

    @cached_property
    def table(self) -> pa.Table:
        with pa.memory_map(self.path) as source:
            return pa.ipc.open_file(source).read_all()

    @cached_property
    def arrivals(self) -> IntArray:
        """Arrival times in microseconds; ConfigError if the column is missing, null, or out of order."""
        if self.arrival is None or self.arrival not in self.table.column_names:
            raise ConfigError(f"option arrival={self.arrival!r} is no column of {self.path}: {self.table.column_names}")
        column = self.table.column(self.arrival).cast(pa.timestamp("us")).cast(pa.int64())
        if column.null_count:
            raise ConfigError(f"column {self.arrival!r} of {self.path} has {column.null_count} nulls, need none")
        times: IntArray = column.to_numpy()
        if np.any(times[1:] < times[:-1]):
            raise ConfigError(f"rows of {self.path} are not in ascending order of {self.arrival!r}; sort them first")
        return times

    def slice(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        return iter(self.table.slice(start, end - start).to_batches())

    def __getstate__(self) -> dict[str, Any]:
        # Each process maps the file itself; a table in the pickle would be a copy of the data per task.
        return {"path": self.path, "arrival": self.arrival}


@dataclass
class Rows(InputPartition):
    """Rows [start, end) of a recording, read by one task."""

    start: int
    end: int


def partitions_of(start: int, end: int, count: int) -> list[Rows]:
    """Cut rows [start, end) into at most `count` parts of about equal size, none empty."""
    cuts = np.linspace(start, end, count + 1).astype(np.int64).tolist()
    return [Rows(a, b) for a, b in pairwise(cuts) if b > a]


class ReplaySource(DataSource):
    """`spark.readStream.format("skypane-replay")`: options path, arrival, speedup, rowsPerTrigger, partitions.

    path: an Arrow IPC file. arrival: its timestamp column in ascending order (streams only). speedup: seconds of
    arrival per second of wall clock; all at once if not given. rowsPerTrigger: most rows per micro-batch. partitions:
    tasks per micro-batch (2). A batch read gives the whole file.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @cached_property
    def recording(self) -> Recording:
        if "path" not in self.options:
            raise ConfigError(f"{FORMAT} needs option path, the Arrow file to replay, got {dict(self.options)}")
        return Recording(self.options["path"], self.options.get("arrival"))

    def schema(self) -> StructType:
        return from_arrow_schema(self.recording.table.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema
        return ReplayReader(self.recording, self._number("partitions", int, 2))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return ReplayStreamReader(
            self.recording,
            speedup=self._number("speedup", float, None),
            limit=self._number("rowsPerTrigger", int, None),
            partitions=self._number("partitions", int, 2),
        )

    def _number(self, option: str, kind: Callable[[Any], float], default: Any) -> Any:
        text = self.options.get(option)
        if text is None:
            return default
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not value > 0:
            raise ConfigError(f"option {option} of {FORMAT} must be a number above zero, got {text!r}")
        return value


class ReplayReader(DataSourceReader):
    """The whole recording, for batch queries."""

    def __init__(self, recording: Recording, partitions: int) -> None:
        self.recording = recording
        self.count = partitions

    def partitions(self) -> list[Rows]:
        return partitions_of(0, self.recording.table.num_rows, self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = cast("Rows", partition)
        return self.recording.slice(rows.start, rows.end)


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows by the clock. The clock lives in the one process that plans, never in a task."""

    def __init__(
        self,
        recording: Recording,
        *,
        speedup: float | None,
        limit: int | None,
        partitions: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recording = recording
        self.speedup = speedup
        self.limit = limit
        self.count = partitions
        self.clock = clock
        #: (clock, row) at which this run's time began; None before its first trigger and at that one
        self.began: tuple[float, int] | None = None
        self.primed = False

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        row = start["row"]
        most = row + limit.max_rows if isinstance(limit, ReadMaxRows) else len(self.recording.arrivals)
        return {"row": min(most, self._due(row))}

    def _due(self, row: int) -> int:
        arrivals = self.recording.arrivals
        if self.speedup is None:
            return len(arrivals)
        if not self.primed:
            self.primed = True
            return min(row + 1, len(arrivals))
        if self.began is None:
            self.began = (self.clock(), row)
        since, first = self.began
        return max(row, due(arrivals, first, self.clock() - since, self.speedup))

    def prepareForTriggerAvailableNow(self) -> None:
        self.speedup = None  # a recording is complete: all of it is available now

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def reportLatestOffset(self) -> dict[str, int]:
        return {"row": len(self.recording.arrivals)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Rows]:
        return partitions_of(start["row"], end["row"], self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = cast("Rows", partition)
        return self.recording.slice(rows.start, rows.end)
