"""Pieces of text as Arrow columns, a row each: lines of a file, messages of a topic. One that is no row says what it was.

Many pieces are parsed at once; only where that fails are they halved, until those that are no rows stand alone. Who calls
has looked at each piece first (lines.py, messages.py), for what the parsers are not safe from: the one of JSON ends the
process where a text begins with `null`, and both of them read on over the end of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from skypane.naming import shortened

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
    parse = pj.ParseOptions(layout.columns, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(text), pj.ReadOptions(**_in_one(text)), parse)
    return table.select(layout.columns.names).cast(layout.columns)


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
