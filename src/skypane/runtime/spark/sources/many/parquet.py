"""Finished parquet files, as inputs: `{"parquet": pattern}`, or a path that ends in .parquet. Their offsets count rows.

A file that is being written has no footer yet, and counts as missing until it has one; a finished file must not change.
Columns are matched by name. A missing column is null; rows whose values cannot be cast to the schema are malformed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skypane.control.admission import MetaData
from skypane.naming import shortened
from skypane.operators.entry.raw_text import OFFSET
from skypane.runtime.row_parser import Malformed, sentence, wants_places
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, RowOffsets, described
from skypane.runtime.spark.sources.many.path_patterns import PathSpec, existing
from skypane.types import CheckpointError

_ROWS = 1 << 16
"""Rows per record batch."""
_UNREADABLE = (OSError, EOFError, pa.ArrowException, UnicodeDecodeError)
"""Exceptions of a file that is unfinished or damaged (its column names may be invalid UTF-8)."""
_FOOTERS = 100_000
"""Files whose row counts are cached."""


KEY: Final = "parquet"
"""The key of a mapping that chooses this kind."""


@dataclass(frozen=True, slots=True)
class ParquetInput(PathSpec, RowOffsets):
    """A finished parquet file, or a pattern (*, ?, [..], **) that matches many.

    parquet  the path or pattern; the file may be created later
    name     the name in the input column; each file of a pattern is named by its path
    meta     what is known of its rate beforehand
    exact    whether *, ? and [ in the path are literal
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


def of(given: Mapping[str, Any], where: str) -> ParquetInput:
    """Return the file or pattern that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    return described(ParquetInput, given, where)


def look(listed: Sequence[ParquetInput], at: Mapping[str, int]) -> Iterator[InputExtent]:
    """Yield the finished files, each with its number of rows."""
    return existing(listed, at, _rows_of)


def _rows_of(path: str) -> int | None:
    """Return the number of rows in a file; None if it is missing or not finished."""
    try:
        stat = os.stat(path)  # noqa: PTH116
        return _footer(path, stat.st_size, stat.st_mtime_ns)
    except _UNREADABLE:
        return None


@lru_cache(_FOOTERS)
def _footer(path: str, _size: int, _changed: int) -> int:
    rows: int = pq.read_metadata(path).num_rows
    return rows


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of files, in sequence."""
    for part in parts:
        one = part.input
        assert isinstance(one, ParquetInput)  # noqa: S101 - ranges come here by their kind
        try:
            for at, rows in _stored(one.parquet, columns.names, part.start, part.end):
                for found in _as_columns(rows, columns, at):
                    yield part, found
        except _UNREADABLE as error:
            raise CheckpointError(
                f"input {one.name}: {one.parquet} cannot be read up to row {part.end:,}, which a started batch needs "
                f"({shortened(str(error))}); restore the file"
            ) from error


def peek(
    parts: Sequence[OffsetRange], columns: pa.Schema, time: str
) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of ranges with the column `time` only: others would be read from the whole row group."""
    return read(parts, pa.schema([columns.field(time)]))


def _stored(path: str, names: Sequence[str], start: int, end: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows [start, end) of a file as stored, with their offsets; only row groups that hold them are read."""
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
                    if at >= end:
                        return
            begin = after
    if begin < end:
        raise EOFError(f"it has {begin:,} rows")


def _as_columns(rows: pa.Table, columns: pa.Schema, at: int) -> Iterator[pa.Table | Malformed]:
    """Yield rows cast to the schema; where the cast fails, rows are halved until the malformed ones are alone."""
    try:
        table = pa.Table.from_arrays([_column(rows, one) for one in columns], schema=columns)
        yield table.append_column(OFFSET, pa.array(np.arange(at, at + len(rows)))) if wants_places(columns) else table
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if len(rows) == 1:
            yield Malformed(at, _text(rows), sentence(error))
            return
        middle = len(rows) // 2
        yield from _as_columns(rows.slice(0, middle), columns, at)
        yield from _as_columns(rows.slice(middle), columns, at + middle)


def _text(rows: pa.Table) -> bytes:
    """Return the one row as text, even if a string in it is not UTF-8."""
    try:
        return str(rows.to_pylist()[0]).encode()
    except UnicodeDecodeError as error:
        return error.object


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    if wanted.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(len(rows), wanted.type)])
    column = rows.column(wanted.name).cast(wanted.type)
    column.validate(full=True)  # a file may hold strings of invalid UTF-8
    return column
