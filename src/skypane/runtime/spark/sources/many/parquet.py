"""Finished parquet files as inputs: `{"parquet": pattern}`, or a path that ends so. A place in one is a count of its rows.

A file that is being written has no footer yet, and is not there until it has; a finished one stays as it is. Columns are
found by name; one that a file lacks is null, and one that cannot be what the schema says is told row by row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from skypane.control.admission import MetaData
from skypane.naming import shortened
from skypane.runtime.spark.sources.many.kinds import Found, Range, plain_meta, values_of
from skypane.runtime.spark.sources.many.parsing import Malformed, sentence
from skypane.runtime.spark.sources.many.patterns import AtPath
from skypane.types import CheckpointError

_ROWS = 1 << 16
"""Rows that are handed on at a time."""
_UNREADABLE = (OSError, EOFError, pa.ArrowException, UnicodeDecodeError)
"""What is raised of a file that is not finished, or damaged: names of columns that are no texts among it."""
_FOOTERS = 100_000
"""Files whose number of rows is remembered."""


KEY: Final = "parquet"
"""What the mapping of such an input has: {"parquet": ...}."""


@dataclass(frozen=True, slots=True)
class ParquetInput(AtPath):
    """A finished parquet file, or a pattern (*, ?, [..], **) for many of them.

    parquet  it may not be there yet
    name     what its rows are called by; of a pattern's files, each by its path
    meta     what is known of its rate beforehand
    exact    whether *, ? and [ in the path are letters of it, and no pattern
    """

    parquet: str
    name: str = ""
    meta: MetaData = field(default_factory=MetaData)
    exact: bool = False

    kind: ClassVar[str] = KEY
    log: ClassVar[None] = None
    unit: ClassVar[str] = "row"
    format: ClassVar[None] = None

    def __post_init__(self) -> None:
        self.settle()

    def plain(self) -> dict[str, Any]:
        return {"parquet": self.parquet, "name": self.name, "meta": plain_meta(self.meta), "exact": self.exact}

    def is_input(self, path: str) -> bool:
        return os.path.isfile(path)  # noqa: PTH113 - to open a pipe waits for who writes to it

    def per_row(self, _start: int) -> float:
        return 1.0

    def complete(self, start: int, last: int) -> int:
        return max(start, last)

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        end = min(start + rows, max(start, last))
        return end, end - start


def of(given: Mapping[str, Any], where: str) -> ParquetInput:
    """Return the file or pattern that a mapping means; ConfigError, naming `where`, if it means none."""
    return ParquetInput(**values_of(ParquetInput, given, where))


def look(listed: Sequence[ParquetInput], at: Mapping[str, int]) -> Iterator[Found]:
    """Yield the files that are there and finished, each with its number of rows."""
    for entry in listed:
        for one in entry.found():
            if (rows := _rows_of(one.parquet)) is not None:
                yield Found(one, 0, rows, _loss(one, rows, at.get(one.name, 0)))


def _rows_of(path: str) -> int | None:
    """Return how many rows a file has; None if it is not there, or not finished."""
    try:
        stat = os.stat(path)  # noqa: PTH116
        return _footer(path, stat.st_size, stat.st_mtime_ns)
    except _UNREADABLE:
        return None


@lru_cache(_FOOTERS)
def _footer(path: str, _size: int, _changed: int) -> int:
    rows: int = pq.read_metadata(path).num_rows
    return rows


def _loss(one: ParquetInput, rows: int, read: int) -> str:
    if rows >= read:
        return ""
    return (
        f"{one.parquet} has {rows:,} rows, of which {read:,} were read: another file is in its place; put it back, name the "
        "new one differently"
    )


def read(parts: Sequence[Range], columns: pa.Schema) -> Iterator[tuple[Range, pa.Table | Malformed]]:
    """Yield the rows of files, one after the other."""
    for part in parts:
        one = part.input
        assert isinstance(one, ParquetInput)  # noqa: S101 - ranges come here by their kind
        try:
            for at, rows in _stored(one.parquet, columns.names, part.start, part.end):
                for found in _as_columns(rows, columns, at):
                    yield part, found
        except _UNREADABLE as error:
            raise CheckpointError(
                f"input {one.name}: {one.parquet} cannot be read up to row {part.end:,}, which a batch that has begun needs "
                f"({shortened(str(error))}); put it back as it was"
            ) from error


def _stored(path: str, names: Sequence[str], start: int, end: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows [start, end) of a file as they are stored, with their place: of the row groups that hold them alone."""
    with pq.ParquetFile(path) as file:
        begin, there = 0, [name for name in names if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            after = begin + file.metadata.row_group(group).num_rows
            if begin < end and after > start:
                at = begin
                for batch in file.iter_batches(_ROWS, row_groups=[group], columns=there or None):
                    first, last = max(start - at, 0), min(end - at, len(batch))
                    if first < last:
                        yield at + first, pa.Table.from_batches([batch.slice(first, last - first)])
                    at += len(batch)
            begin = after
    if begin < end:
        raise EOFError(f"it has {begin:,} rows")


def _as_columns(rows: pa.Table, columns: pa.Schema, at: int) -> Iterator[pa.Table | Malformed]:
    """Yield rows as the schema has them; where that cannot be, each row for itself."""
    try:
        yield pa.Table.from_arrays([_column(rows, one) for one in columns], schema=columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if len(rows) == 1:
            yield Malformed.of(at, _said(rows), sentence(error))
            return
        middle = len(rows) // 2
        yield from _as_columns(rows.slice(0, middle), columns, at)
        yield from _as_columns(rows.slice(middle), columns, at + middle)


def _said(rows: pa.Table) -> bytes:
    """Return what a row says, also where a text in it is no UTF-8."""
    try:
        return str(rows.to_pylist()[0]).encode()
    except UnicodeDecodeError as error:
        return error.object


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    if wanted.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(len(rows), wanted.type)])
    column = rows.column(wanted.name).cast(wanted.type)
    column.validate(full=True)  # a file may hold texts that are none
    return column
