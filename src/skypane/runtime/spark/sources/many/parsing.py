"""Pieces of text as Arrow columns, a row each: lines of a file, messages of a topic. One that is no row says what it was.

Many pieces are parsed at once; only where that fails are they halved, until those that are no rows stand alone. Who calls
has looked at each piece first (lines.py, messages.py), for what the parsers are not safe from: the one of JSON ends the
process where a text begins with `null`, and both of them read on over the end of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from skypane.naming import shortened
from skypane.types import ConfigError

FORMATS = ("csv", "json")

MISTAKES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError)
"""What is raised for text that does not parse."""

Places: TypeAlias = npt.NDArray[np.int64]

BLANKS = b" \t\r\n"
"""Between the values of JSON."""

NOT_AN_OBJECT = "a row must be an object, from { to }"


class Layout(NamedTuple):
    """How rows are written: csv or json, the columns to have, and for csv the columns of a line, in order."""

    format: str
    columns: pa.Schema
    written: tuple[str, ...]


class Malformed(NamedTuple):
    """A piece that is no row: its place in its input, what it says, and what is wrong with it."""

    offset: int
    line: str
    error: str

    @classmethod
    def of(cls, offset: int, text: bytes, error: str) -> Malformed:
        return cls(offset, shortened(text.decode(errors="replace").rstrip("\r\n")), error)


def check_nullable(columns: pa.Schema) -> None:
    """Raise ConfigError, naming the column, for one that could not have the nulls of a row that does not parse."""
    for one in columns:
        if not one.nullable:
            raise ConfigError(f"column {one.name!r} is NOT NULL, and what does not parse has nulls; leave out NOT NULL")


def check_columns(form: str, columns: pa.Schema) -> None:
    """Raise ConfigError, naming the column, for one that no row of csv or JSON could have."""
    nothing = b"{}\n" if form == "json" else b'""\n'
    for one in columns:
        try:
            parsed(Layout(form, pa.schema([one]), (one.name,)), nothing)
        except pa.ArrowNotImplementedError:
            raise ConfigError(
                f"column {one.name!r} is {one.type}, which cannot be read from {form}; read it as a string, and take it apart"
            ) from None


class Pieces(NamedTuple):
    """Pieces of a text, each of which must be a row.

    text     piece i is text[bounds[i]:bounds[i + 1]], its end of line included
    offsets  the place of each in its input

    In JSON each piece begins with { and ends with }: "}", a line end and "{" are never within an object, so each holds
    a whole number of objects, and at least one. In csv none is empty or has an end of line within it, so each is a row
    or, within quotes, a part of one. Both ways there are as many rows as pieces only if each piece is one.
    """

    text: bytes
    bounds: Places
    offsets: Places

    def part(self, first: int, last: int) -> Pieces:
        begin, end = int(self.bounds[first]), int(self.bounds[last])
        return Pieces(self.text[begin:end], self.bounds[first : last + 1] - begin, self.offsets[first:last])


def rows_of(layout: Layout, pieces: Pieces) -> Iterator[pa.Table | Malformed]:
    """Yield tables of the pieces, in order, and between them those that are no row."""
    count = len(pieces.offsets)
    if not count:
        return
    table, wrong = tried(layout, pieces.text, count)
    if table is not None:
        yield table
        return
    if count == 1:
        yield Malformed.of(int(pieces.offsets[0]), pieces.text, wrong)
        return
    yield from rows_of(layout, pieces.part(0, count // 2))
    yield from rows_of(layout, pieces.part(count // 2, count))


def tried(layout: Layout, text: bytes, count: int) -> tuple[pa.Table | None, str]:
    """Return a text as a table of so many rows; None, and what is wrong, if it is not."""
    try:
        table = parsed(layout, text)
    except MISTAKES as error:
        return None, sentence(error)
    if len(table) == count:
        return table, ""
    return None, f"a line is a row, and here are {len(table):,} in {count:,}"


def sentence(error: Exception) -> str:
    """Return what is wrong with a text, in a line."""
    return shortened(str(error).splitlines()[0])


def parsed(layout: Layout, text: bytes) -> pa.Table:
    """Return a text of whole lines as a table; one of MISTAKES is raised for a line that does not parse."""
    return _json(layout, text) if layout.format == "json" else _csv(layout, text)


def _json(layout: Layout, text: bytes) -> pa.Table:
    if not text.isascii():
        text.decode()  # the parser does not look at what is no UTF-8
    columns = layout.columns
    try:
        return _json_as(columns, text, pa.types.is_date)
    except MISTAKES as error:
        if "timestamp" in str(error):
            return _json_as(columns, text, _is_time)  # a time may be finer than ours
        if not _texts(columns, pa.types.is_date):
            raise
        return _json_as(columns, text, _never)  # a date may be a number of days


def _json_as(columns: pa.Schema, text: bytes, is_text: Callable[[pa.DataType], bool]) -> pa.Table:
    """Return a text as a table; the parser takes columns of such types for texts, which are made dates and times then."""
    texts = _texts(columns, is_text)
    read = pa.schema([pa.field(one.name, pa.string()) if one.name in texts else one for one in columns])
    parse = pj.ParseOptions(read, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(text), pj.ReadOptions(**_in_one(text)), parse)
    arrays = [_made(table.column(one.name), one.type) for one in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


def _texts(columns: pa.Schema, is_text: Callable[[pa.DataType], bool]) -> frozenset[str]:
    return frozenset(one.name for one in columns if is_text(one.type))


def _never(_type: pa.DataType) -> bool:
    return False


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _made(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_string(column.type) and pa.types.is_timestamp(kind):
        return _fine(column).cast(kind, safe=False)  # what is finer than a microsecond is cut off
    return column.cast(kind)


def _fine(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as times to the nanosecond; without a zone they are of UTC, as they are to the parser."""
    try:
        return column.cast(pa.timestamp("ns", "UTC"))
    except pa.ArrowInvalid:
        return column.cast(pa.timestamp("ns"))


def _csv(layout: Layout, text: bytes) -> pa.Table:
    # One more row, of nothing, is what a quoted field that does not end would take with it: then a row is missing.
    more = b'"' in text[text.rfind(b"\n", 0, -1) + 1 :]
    if more:
        text += b",".join([b'""'] * len(layout.written)) + b"\n"
    columns = pc.ConvertOptions(
        column_types=layout.columns, include_columns=layout.columns.names, include_missing_columns=True
    )
    read = pc.ReadOptions(column_names=list(layout.written), **_in_one(text))
    table = pc.read_csv(pa.BufferReader(text), read, pc.ParseOptions(newlines_in_values=False), columns)
    return table.slice(0, len(table) - more)


def _in_one(text: bytes) -> dict[str, Any]:
    """Return how to read it: a block holds the whole text, since a line may be as long as it."""
    return {"use_threads": False, "block_size": max(len(text), 1 << 16)}
