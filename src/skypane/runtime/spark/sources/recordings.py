"""Files that a replay reads: rows in the order of arrival, with random access.

Planning needs only arrival times, tasks need only rows; each process opens the file itself, and only its path is sent
between them. Arrow files are memory-mapped and cost nothing to open. A parquet file is decoded one row group at a
time, which is kept until another is needed. A csv file is parsed once by each process, as a whole: convert large ones to
parquet first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from skypane.locations import whole
from skypane.preference.column_checks import field_of
from skypane.runtime.spark.sources.arrow_types import as_in_spark
from skypane.types import ConfigError, IntArray, Micros

FORMAT = "skypane-replay"
"""The name of the Spark data source that reads recordings."""

_END_OF_TIME = np.iinfo(np.int64).max

#: rows per record batch: small enough to slice cheaply, large enough for Arrow
CHUNK_ROWS = 8192


def write_recording(table: pa.Table, path: Path) -> None:
    """Write `table`, already in the order of arrival, atomically as an Arrow file to replay.

    Raises ConfigError if the file cannot be written, or if a column has a type that Spark does not have.
    """
    table = table.cast(as_in_spark(table.schema))
    try:
        with whole(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=CHUNK_ROWS)
    except OSError as error:
        raise ConfigError(f"cannot write the recording {path}: {error.strerror or error}") from error


class Replayable(ABC):
    """Rows in ascending order of arrival, numbered from 0."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the rows, in Spark's layouts."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of rows."""

    @abstractmethod
    def due(self, start: int, elapsed: Micros) -> int:
        """Return the first row that arrives more than `elapsed` after row `start`; ConfigError for unusable times."""

    @abstractmethod
    def slice(self, start: int, end: int, since: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield rows [start, end); rows before `since` (default: `start`) will not be requested again."""


@dataclass(frozen=True)
class Recording(Replayable):
    """A file of rows in ascending order of the column `arrival`: Arrow, parquet or csv, by the ending of its name.

    `arrival` may be None if due() is never called. Raises ConfigError if the file cannot be read, or if the column is
    missing, not a time, has nulls, or is out of order.
    """

    path: str
    arrival: str | None = None

    @property
    def schema(self) -> pa.Schema:
        return as_in_spark(self._file.schema)

    @property
    def row_count(self) -> int:
        return self._file.row_count

    @cached_property
    def arrivals(self) -> IntArray:
        """Arrival times in microseconds."""
        if self.arrival is None:
            raise ConfigError(f"replaying {self.path} by the clock needs option arrival, the column with its times")
        return _ascending(self._file.column(field_of(self._file.schema, self.arrival).name), self.arrival, self.path)

    def due(self, start: int, elapsed: Micros) -> int:
        if start >= self.row_count:
            return self.row_count
        clock = min(int(self.arrivals[start]) + elapsed, _END_OF_TIME)
        return max(start, int(np.searchsorted(self.arrivals, clock, side="right")))

    def slice(self, start: int, end: int, since: int | None = None) -> Iterator[pa.RecordBatch]:
        del since
        schema = self.schema
        try:
            for part in self._file.slice(start, end):
                yield from part.cast(schema, safe=False).to_batches(max_chunksize=CHUNK_ROWS)
        except (pa.ArrowInvalid, OSError) as error:
            raise ConfigError(f"cannot read rows {start} to {end} of {self.path}: {error}") from error

    @property
    def _file(self) -> _File:
        return _opened(self.path, _stamp(self.path))

    def __getstate__(self) -> dict[str, Any]:
        # Each process opens the file itself; pickled arrival times would be copied to every task.
        return {"path": self.path, "arrival": self.arrival}


def _ascending(column: pa.ChunkedArray, name: str, path: str) -> IntArray:
    if not (pa.types.is_timestamp(column.type) or pa.types.is_int64(column.type)):
        raise ConfigError(f"column {name!r} of {path} is {column.type}; it must be a timestamp, or int64 microseconds")
    if column.null_count:
        raise ConfigError(f"column {name!r} of {path} has {column.null_count} nulls; arrival times cannot be null")
    times: IntArray = pc.cast(_in_micros(column), pa.int64()).to_numpy()
    if np.any(times[1:] < times[:-1]):
        raise ConfigError(f"rows of {path} are not in ascending order of {name!r}; sort them first")
    return times


def _in_micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_timestamp(column.type):
        return column
    return column.cast(pa.timestamp("us", column.type.tz), safe=False)


class _File(ABC):
    """An opened file."""

    schema: pa.Schema
    row_count: int

    @abstractmethod
    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, whole."""

    @abstractmethod
    def slice(self, start: int, end: int) -> Iterator[pa.Table]:
        """Yield rows [start, end)."""


class _InMemory(_File):
    """A table in memory; an Arrow file is only mapped."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.schema = table.schema
        self.row_count = table.num_rows

    def column(self, name: str) -> pa.ChunkedArray:
        return self.table.column(name)

    def slice(self, start: int, end: int) -> Iterator[pa.Table]:
        yield self.table.slice(start, end - start)


class _Parquet(_File):
    """A parquet file; one row group at a time is in memory."""

    def __init__(self, path: str) -> None:
        self.file = pq.ParquetFile(path)
        self.schema = self.file.schema_arrow
        counts = [self.file.metadata.row_group(group).num_rows for group in range(self.file.metadata.num_row_groups)]
        #: row number at which each row group begins, and the end
        self.begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.row_count = int(self.begins[-1])
        #: number and rows of the decoded row group
        self.decoded: tuple[int, pa.Table] | None = None

    def column(self, name: str) -> pa.ChunkedArray:
        return self.file.read(columns=[name]).column(0)

    def slice(self, start: int, end: int) -> Iterator[pa.Table]:
        group = int(np.searchsorted(self.begins, start, side="right")) - 1
        while start < end:
            begins, ends = int(self.begins[group]), int(self.begins[group + 1])
            if min(end, ends) > start:
                yield self._group(group).slice(start - begins, min(end, ends) - start)
            start, group = max(start, ends), group + 1

    def _group(self, group: int) -> pa.Table:
        if self.decoded is None or self.decoded[0] != group:
            self.decoded = group, self.file.read_row_group(group)
        return self.decoded[1]


#: (size, time of last change): distinguishes an open file from another one under the same name
_Stamp = tuple[int, int]


def _stamp(path: str) -> _Stamp:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise ConfigError(f"cannot read {path} to replay it: {error.strerror or error}") from error
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _opened(path: str, stamp: _Stamp) -> _File:
    del stamp
    try:
        match Path(path).suffix:
            case ".parquet" | ".pq":
                return _Parquet(path)
            case ".csv":
                return _InMemory(pyarrow.csv.read_csv(path))
            case ".arrow" | ".ipc" | ".feather":
                with pa.memory_map(path) as source:
                    return _InMemory(pa.ipc.open_file(source).read_all())
            case other:
                raise ConfigError(f"cannot read {path}: its ending {other!r} is unknown; use .arrow, .parquet or .csv")
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigError(f"cannot read {path} to replay it: {error}") from error
