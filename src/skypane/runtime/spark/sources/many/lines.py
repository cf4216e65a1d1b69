"""Lines of csv or JSON as Arrow columns. A line that does not parse becomes a row of nulls that says what it was.

A block of lines is parsed at once; only where that fails is it halved, until the lines that do not parse stand alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from skypane.naming import shortened

FORMATS = ("csv", "json")

MISTAKES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError)
"""What is raised for text that does not parse."""


class Layout(NamedTuple):
    """How lines are written: csv or json, the columns to have, and for csv the columns of a line, in order."""

    format: str
    columns: pa.Schema
    written: tuple[str, ...]


class Malformed(NamedTuple):
    """A line that does not parse: its place in its input, what it says, and what is wrong with it."""

    offset: int
    line: str
    error: str


def header(line: bytes) -> tuple[str, ...]:
    """Return the columns that a csv file's first line names."""
    return tuple(pc.read_csv(io.BytesIO(line + b"\n" if not line.endswith(b"\n") else line)).column_names)


def parse(layout: Layout, block: bytes, offset: int) -> Iterator[pa.Table | Malformed]:
    """Yield tables of whole lines, in order, and between them the lines that do not parse."""
    if not block.strip():
        return
    try:
        yield parsed(layout, block)
    except MISTAKES as error:
        middle = block.find(b"\n", len(block) // 2) + 1
        if middle in {0, len(block)}:
            middle = block.rfind(b"\n", 0, len(block) - 1) + 1
        if middle == 0:
            yield Malformed(offset, shortened(block.decode(errors="replace").rstrip("\r\n")), sentence(error))
            return
        yield from parse(layout, block[:middle], offset)
        yield from parse(layout, block[middle:], offset + middle)


def sentence(error: Exception) -> str:
    """Return what is wrong with a text, in a line."""
    return shortened(str(error).splitlines()[0])


def parsed(layout: Layout, block: bytes) -> pa.Table:
    """Return a block of whole lines as a table; one of MISTAKES is raised for a line that does not parse."""
    source = io.BytesIO(block)
    if layout.format == "json":
        # A block holds the whole text: a line may be as long as it.
        read = pj.ReadOptions(use_threads=False, block_size=max(len(block), 1 << 16))
        table = pj.read_json(source, read, pj.ParseOptions(layout.columns, unexpected_field_behavior="ignore"))
        return table.select(layout.columns.names).cast(layout.columns)
    return pc.read_csv(
        source,
        pc.ReadOptions(use_threads=False, column_names=list(layout.written), block_size=max(len(block), 1 << 16)),
        pc.ParseOptions(newlines_in_values=False),
        pc.ConvertOptions(
            column_types=layout.columns, include_columns=layout.columns.names, include_missing_columns=True
        ),
    )
