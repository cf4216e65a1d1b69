"""Finished parquet files, as inputs: `{"parquet": pattern}`, or a path that ends in .parquet. Their offsets count rows.

A file that is being written has no footer yet, and counts as missing until it has one; a finished file must not change.
Columns are matched by name, as Spark compares names. A missing column is null; rows whose values cannot be cast to the schema
(parquet_types.py) are malformed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skypane.control.admission import MetaData
from skypane.naming import shortened
from skypane.operators.entry.raw_text import OFFSET
from skypane.runtime.columns_to_read import names_of, wants_places
from skypane.runtime.row_parser import Malformed, sentence
from skypane.runtime.spark.sources.many import parquet_types
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

    def names(self) -> tuple[str, ...]:
        """Return the columns of the file, whose footer is there."""
        with suppress(*_UNREADABLE):
            return tuple(pq.read_schema(self.parquet).names)
        return ()


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
            for at, rows, wrong in _stored(one.parquet, columns, part.start, part.end):
                for found in _as_columns(rows, columns, at) if not wrong else _malformed(rows, at, wrong):
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
    return read(parts, pa.schema([columns.field(time)], columns.metadata))


def _stored(path: str, columns: pa.Schema, start: int, end: int) -> Iterator[tuple[int, pa.Table, str]]:
    """Yield rows [start, end) of a file as stored under the names of columns, with their offsets; only row groups that hold them are read.

    With them comes the reason for which they are malformed, or an empty text.
    """
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        stored, wrong = file.schema_arrow.names, ""
        try:
            named = dict(zip(stored, names_of(columns, stored), strict=True))
        except ValueError as error:
            named, wrong = dict(zip(stored, stored, strict=True)), str(error)
        begin, there = 0, [name for name, column in named.items() if column in columns.names]
        for group in range(file.num_row_groups):
            after = begin + file.metadata.row_group(group).num_rows
            if begin < end and after > start:
                at = begin
                for batch in file.iter_batches(_ROWS, row_groups=[group], columns=there or None):
                    first, last = max(start - at, 0), min(end - at, len(batch))
                    if first < last:
                        rows = pa.Table.from_batches([batch.slice(first, last - first)])
                        yield at + first, rows.rename_columns([named[name] for name in rows.column_names]), wrong
                    at += len(batch)
                    if at >= end:
                        return
            begin = after
    if begin < end:
        raise EOFError(f"it has {begin:,} rows")


def _malformed(rows: pa.Table, at: int, wrong: str) -> Iterator[Malformed]:
    for row in range(len(rows)):
        yield Malformed(at + row, _text(rows.slice(row, 1)), wrong)


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
    column = rows.column(wanted.name)
    try:
        column = parquet_types.cast(column, wanted.type)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"column {wanted.name!r}: {error}") from None
    column.validate(full=True)  # a file may hold strings of invalid UTF-8
    return column
