"""Parse pieces of text (lines of files, messages of topics) into Arrow columns, one row each; report malformed pieces.

Many pieces are parsed at once. If that fails, they are halved until the malformed pieces are alone. Callers check each
piece first (line_rows.py, message_rows.py), because the parsers are unsafe: the JSON parser ends the process if a text
begins with `null`, and both parsers read on past the end of a line.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from skypane.naming import shortened
from skypane.operators.entry.raw_text import OFFSET, RAW
from skypane.runtime.columns_to_read import wants_places, zone_of
from skypane.runtime.json_rows import EXPONENT, Row, binaries, decimals, has_decimals, needs_care, table_of, values_of
from skypane.runtime.local_times import UTC, times_of
from skypane.types import ConfigError

FORMATS = ("csv", "json")

MISTAKES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError)
"""Exceptions for text that does not parse."""

Places: TypeAlias = npt.NDArray[np.int64]

BLANKS = b" \t\r\n"
"""White space between JSON values."""

MARK = codecs.BOM_UTF8
"""The UTF-8 byte order mark, which no parser skips but csv's at the start of a text."""

FORM, FILE = b"form", b"file"
"""Keys of the metadata of a table: the form of its rows' texts, and the object that they are in."""

_FEW = 512
"""Rows of JSON that are read one by one after the parser has failed: to halve them further would take longer."""

NOT_AN_OBJECT = "a row must be an object, from { to }"


class RowFormat(NamedTuple):
    """Format of rows: csv or json, the columns to return, and for csv the columns of a line, in order."""

    format: str
    columns: pa.Schema
    written: tuple[str, ...]

    @property
    def form(self) -> str:
        """The format as a text, of which form_of() returns the parts: "json", or "csv" and the names of the columns."""
        if self.format == "json":
            return self.format
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(self.written)
        return f"csv {line.getvalue()}"


def form_of(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the format and the columns of a line that `form` names; None if a text names none."""
    name, _, columns = text.partition(" ")
    if name not in FORMATS:
        return None
    return name, tuple(next(csv.reader([columns]), ()))


class Malformed(NamedTuple):
    """A piece that is not a row.

    offset  its offset in its input
    text    its bytes without the line end; of a line that is too long or damaged, its beginning; None: there is no text
    error   why it does not parse
    form    how it would be parsed (RowFormat.form); empty if it cannot be
    number  the number of its line in its file, from 1; None: not known
    file    the object that it is in, if its input is a folder of them
    within  its offset in that object
    """

    offset: int
    text: bytes | None
    error: str
    form: str = ""
    number: int | None = None
    file: str = ""
    within: int | None = None

    @property
    def line(self) -> str:
        """The text as errors and reports show it."""
        return shortened((self.text or b"").decode(errors="replace").rstrip("\r\n"))


def check_nullable(columns: pa.Schema) -> None:
    """Raise ConfigError, naming the column, for a column that cannot hold the nulls of a malformed row."""
    for one in columns:
        if not one.nullable:
            raise ConfigError(f"column {one.name!r} is NOT NULL, but malformed rows have nulls; leave out NOT NULL")


def check_columns(form: str, columns: pa.Schema) -> None:
    """Raise ConfigError, naming the column, for a type that cannot be parsed from csv or JSON."""
    nothing = b"{}\n" if form == "json" else b'""\n'
    for one in columns:
        try:
            parsed(RowFormat(form, pa.schema([one]), (one.name,)), nothing)
        except pa.ArrowNotImplementedError:
            raise ConfigError(
                f"column {one.name!r} is {one.type}, which cannot be read from {form}; read it as a string and parse it"
            ) from None


class TextPieces(NamedTuple):
    """Pieces of a text, each of which must be a row.

    text     piece i is text[bounds[i]:bounds[i + 1]], its line end included
    offsets  the offset of each piece in its input

    In JSON each piece begins with { and ends with }. The sequence "}", line end, "{" never occurs within an object, so
    each piece holds a whole number of objects, at least one. In csv no piece is empty or contains a line end, so each
    is a row or, within quotes, a part of one. In both formats, equal numbers of rows and pieces mean one row per piece.
    """

    text: bytes
    bounds: Places
    offsets: Places

    def part(self, first: int, last: int) -> TextPieces:
        begin, end = int(self.bounds[first]), int(self.bounds[last])
        return TextPieces(self.text[begin:end], self.bounds[first : last + 1] - begin, self.offsets[first:last])


def rows_of(layout: RowFormat, pieces: TextPieces) -> Iterator[pa.Table | Malformed]:
    """Yield tables of the pieces, in order, with malformed pieces between them."""
    count = len(pieces.offsets)
    if not count:
        return
    table, wrong = tried(layout, pieces.text, count)
    if table is not None:
        yield placed(layout, table, pieces)
        return
    if layout.format == "json" and count <= _FEW:
        yield from _built(
            layout, pieces, values_of(layout.columns, [pieces.part(at, at + 1).text for at in range(count)])
        )
        return
    if count == 1:
        yield Malformed(int(pieces.offsets[0]), pieces.text.removesuffix(b"\n"), wrong, layout.form)
        return
    yield from rows_of(layout, pieces.part(0, count // 2))
    yield from rows_of(layout, pieces.part(count // 2, count))


def _built(layout: RowFormat, pieces: TextPieces, values: Sequence[Row | None]) -> Iterator[pa.Table | Malformed]:
    """Yield tables of pieces whose values were read one by one; what has none is for the parser, which says what is wrong."""
    rows = table_of(layout.columns, values)
    if rows is not None:
        yield placed(layout, rows, pieces)
        return
    count = len(values)
    if count == 1:
        table, wrong = tried(layout, pieces.text, 1)
        malformed = Malformed(int(pieces.offsets[0]), pieces.text.removesuffix(b"\n"), wrong, layout.form)
        yield malformed if table is None else placed(layout, table, pieces)
        return
    yield from _built(layout, pieces.part(0, count // 2), values[: count // 2])
    yield from _built(layout, pieces.part(count // 2, count), values[count // 2 :])


def placed(layout: RowFormat, table: pa.Table, pieces: TextPieces) -> pa.Table:
    """Return the rows of pieces with their offsets and texts, which are not copied, if these are wanted."""
    if not wants_places(layout.columns):
        return table
    texts = pa.Array.from_buffers(
        pa.large_binary(),
        len(table),
        [None, pa.py_buffer(np.ascontiguousarray(pieces.bounds)), pa.py_buffer(pieces.text)],
    )
    table = table.append_column(OFFSET, pa.array(pieces.offsets)).append_column(RAW, texts)
    return table.replace_schema_metadata({FORM: layout.form})


def tried(layout: RowFormat, text: bytes, count: int) -> tuple[pa.Table | None, str]:
    """Return a text as a table of `count` rows and an empty error; or None and the error."""
    if layout.format == "json" and needs_care(layout.columns, text):
        return None, "a value does not have the type of its column"  # values_of() reads such rows
    try:
        table = parsed(layout, text)
    except MISTAKES as error:
        return None, sentence(error)
    if len(table) == count:
        return table, ""
    return None, f"a line must be one row, but {count:,} lines have {len(table):,}"


def sentence(error: Exception) -> str:
    """Return the first line of an error, shortened."""
    return shortened(str(error).splitlines()[0])


def parsed(layout: RowFormat, text: bytes) -> pa.Table:
    """Return a text of whole lines as a table; raise one of MISTAKES for a line that does not parse."""
    return _json(layout, text) if layout.format == "json" else _csv(layout, text)


def _json(layout: RowFormat, text: bytes) -> pa.Table:
    if not text.isascii():
        text.decode()  # raises for invalid UTF-8, which the parser accepts
    columns = layout.columns
    try:
        return _json_as(columns, text, _is_date_or_local if zone_of(columns) == UTC else _is_time)
    except MISTAKES as error:
        if "timestamp" not in str(error):
            raise
        return _json_as(columns, text, _is_time)  # a time may be finer than microseconds


def _json_as(columns: pa.Schema, text: bytes, is_text: Callable[[pa.DataType], bool]) -> pa.Table:
    """Return a text as a table; columns that `is_text` accepts, and bytes, are parsed as strings first."""
    texts = _texts(columns, is_text) | _texts(columns, pa.types.is_binary)
    read = pa.schema([pa.field(one.name, pa.string()) if one.name in texts else one for one in columns])
    parse = pj.ParseOptions(read, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(text), pj.ReadOptions(**_in_one(text)), parse)
    if has_decimals(columns):
        table.validate(full=True)  # the parser lets more digits in than a type has
    arrays = [_made(table.column(one.name), one.type, zone_of(columns)) for one in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


def _texts(columns: pa.Schema, is_text: Callable[[pa.DataType], bool]) -> frozenset[str]:
    return frozenset(one.name for one in columns if is_text(one.type))


def _is_date_or_local(kind: pa.DataType) -> bool:
    """Return whether a type is of dates, which the parser does not read, or of times without a zone, which it moves to UTC."""
    return bool(pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _made(column: pa.ChunkedArray, kind: pa.DataType, zone: str) -> pa.ChunkedArray:
    if pa.types.is_string(column.type) and pa.types.is_binary(kind):
        return binaries(column)
    if pa.types.is_decimal(kind) and pa.types.is_string(column.type):
        return decimals(column, kind)
    if not pa.types.is_string(column.type):
        return column.cast(kind)
    return times_of(column, kind, zone) if pa.types.is_timestamp(kind) else column.cast(kind)


def _csv(layout: RowFormat, text: bytes) -> pa.Table:
    # An extra empty row is swallowed by a quoted field that does not end: then the row count is too low.
    more = b'"' in text[text.rfind(b"\n", 0, -1) + 1 :]
    if more:
        text += (b"," * (len(layout.written) - 1) or b'""') + b"\n"
    columns, zone = layout.columns, zone_of(layout.columns)
    try:
        if has_decimals(columns) and EXPONENT.search(text):
            raise pa.ArrowInvalid("the parser reads no decimal with an exponent as it is")
        table = _csv_as(columns, layout, text)
        if has_decimals(columns):
            table.validate(full=True)  # the parser lets more digits in than a type has
    except MISTAKES:
        # A time may be local, or finer than microseconds, and a number may be an empty text in quotes, which is null only for numbers.
        texts = [one for one in columns if _is_text(one.type)]
        if len(texts) == len(columns):
            raise
        read = pa.schema([one.with_type(pa.string()) if _is_time(one.type) or pa.types.is_decimal(one.type) else one
                          for one in columns if one not in texts])  # fmt: skip
        table = _csv_as(read, layout, text)
        found = dict(zip(table.column_names, table.columns, strict=True))
        if texts:
            found |= dict(
                zip((one.name for one in texts), _csv_as(pa.schema(texts), layout, text).columns, strict=True)
            )
        table = pa.Table.from_arrays([_made(found[one.name], one.type, zone) for one in columns], schema=columns)
    return table.slice(0, len(table) - more)


def _csv_as(columns: pa.Schema, layout: RowFormat, text: bytes) -> pa.Table:
    """Return a text as a table; only where texts are read, an empty one in quotes is none."""
    options = pc.ConvertOptions(
        column_types=columns, include_columns=columns.names, include_missing_columns=True, null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=not any(_is_text(one.type) for one in columns),
    )  # fmt: skip
    read = pc.ReadOptions(column_names=list(layout.written), **_in_one(text))
    return pc.read_csv(pa.BufferReader(text), read, pc.ParseOptions(newlines_in_values=False), options)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _in_one(text: bytes) -> dict[str, Any]:
    """Return read options with one block for the whole text, because a line may be as long as the text."""
    return {"use_threads": False, "block_size": max(len(text), 1 << 16)}
