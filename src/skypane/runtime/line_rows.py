"""Parse lines of csv or JSON into Arrow columns, one row each; report malformed lines with offsets, skip empty ones.

Before a parser runs, NumPy checks the edges of all lines at once. If all are regular and the parser returns one row per
line, nothing more is done; otherwise Python checks the irregular lines.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc

from skypane.runtime.growing_files import LineBlock
from skypane.runtime.row_parser import (
    BLANKS,
    MARK,
    MISTAKES,
    NOT_AN_OBJECT,
    Malformed,
    Places,
    RowFormat,
    TextPieces,
    placed,
    rows_of,
    tried,
)

_LINE_END, _RETURN, _OPENS, _CLOSES = b"\n\r{}"
_DIVIDED = "there is an end of line within it"

Flags: TypeAlias = npt.NDArray[np.bool_]


def header(line: bytes) -> tuple[str, ...]:
    """Return the columns that a csv file's first line names, without the blanks around them, as Spark does; none of no line.

    A line that does not parse counts as one column's name.
    """
    if not line:
        return ()
    try:
        named = pc.read_csv(io.BytesIO(line + b"\n" if not line.endswith(b"\n") else line)).column_names
    except MISTAKES:
        named = [line.decode(errors="replace")]
    return tuple(name.strip() for name in named)


def parse_all(layout: RowFormat, blocks: Iterable[LineBlock], offset: int = 0) -> Iterator[pa.Table | Malformed]:
    """Yield the tables and malformed lines of a file's blocks; the file begins at `offset` of its input."""
    for block in blocks:
        if block.error:
            yield Malformed(offset + block.start, without_end(block.text), block.error)
        else:
            yield from parse(layout, block.text, offset + block.start)


def without_end(line: bytes) -> bytes:
    """Return a line without its line end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def parse(layout: RowFormat, block: bytes, offset: int) -> Iterator[pa.Table | Malformed]:
    """Yield tables of a block's lines, in order; malformed lines are yielded between or before the tables."""
    if not block:
        return
    if not block.endswith(b"\n"):
        block += b"\n"
    if usual := _usual(layout, block):
        table, _ = tried(layout, block, usual)
        if table is not None:
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_END) + 1
            bounds = np.concatenate([[0], ends])
            yield placed(layout, table, TextPieces(block, bounds, bounds[:-1] + offset))
            return
    yield from _checked(layout, Lines.of(block), offset)


class LineRows(NamedTuple):
    """The lines of a block, each with its row.

    lengths  the bytes of each line, its end included
    rows     a row for each line; nulls for one that is empty or malformed
    errors   the error of each malformed line, and "" of each empty one, by its number in the block
    """

    lengths: Places
    rows: pa.Table
    errors: Mapping[int, str]


def parse_each(layout: RowFormat, block: bytes) -> LineRows:
    """Return the row of each line of a block, which ends with a line end."""
    if usual := _usual(layout, block):
        table, _ = tried(layout, block, usual)
        if table is not None:
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_END) + 1
            return LineRows(np.diff(ends, prepend=0), table, {})
    lines = Lines.of(block)
    wrong, error = lines.wrong(layout)
    filled = lines.stops > lines.begins
    errors = dict.fromkeys(np.flatnonzero(~filled).tolist(), "") | dict.fromkeys(np.flatnonzero(wrong).tolist(), error)
    tables, at = [layout.columns.empty_table()], 0
    places: list[Places] = []
    kept = np.flatnonzero(filled & ~wrong)
    for found in rows_of(layout, lines.pieces(filled & ~wrong, 0)):
        if isinstance(found, Malformed):
            errors[int(kept[at])] = found.error
            at += 1
        else:
            tables.append(found)
            places.append(kept[at : at + len(found)])
            at += len(found)
    row = np.full(len(lines.ends), -1)
    row[np.concatenate([*places, np.empty(0, np.int64)])] = np.arange(sum(map(len, tables)))
    rows = pa.concat_tables(tables).take(pa.array(row, mask=row < 0))
    return LineRows(lines.ends - lines.starts, rows, errors)


def _usual(layout: RowFormat, block: bytes) -> int:
    """Return the number of lines in a block if all can be parsed unchecked, else 0."""
    data = np.frombuffer(block, np.uint8)
    if layout.format == "csv":
        # The parser skips empty lines: then the row count differs, and the lines are checked.
        return 0 if b"\r" in block or MARK[:1] in block else int(np.count_nonzero(data == _LINE_END))
    ends = np.flatnonzero(data == _LINE_END)
    objects = data[0] == _OPENS and (data[ends - 1] == _CLOSES).all() and (data[ends[:-1] + 1] == _OPENS).all()
    return len(ends) if objects else 0


def _checked(layout: RowFormat, lines: Lines, offset: int) -> Iterator[pa.Table | Malformed]:
    wrong, error = lines.wrong(layout)
    for at in np.flatnonzero(wrong).tolist():
        yield Malformed(offset + int(lines.starts[at]), lines.text(at), error, layout.form)
    for found in rows_of(layout, lines.pieces((lines.stops > lines.begins) & ~wrong, offset)):
        yield found._replace(text=without_end(found.text or b"")) if isinstance(found, Malformed) else found


@dataclass(slots=True)
class Lines:
    """The lines of a block: line i with its end is block[starts[i]:ends[i]], its text is block[begins[i]:stops[i]]."""

    block: bytes
    data: npt.NDArray[np.uint8]
    starts: Places
    ends: Places
    begins: Places
    stops: Places

    @classmethod
    def of(cls, block: bytes) -> Self:
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _LINE_END) + 1
        starts = np.concatenate([[0], ends[:-1]])
        stops = ends - 1
        stops -= (stops > starts) & (data[stops - 1] == _RETURN)
        return cls(block, data, starts, ends, starts.copy(), stops)

    def text(self, at: int) -> bytes:
        return self.block[self.begins[at] : self.stops[at]]

    def wrong(self, layout: RowFormat) -> tuple[Flags, str]:
        """Return which lines cannot be given to the parser, and why."""
        self.pass_marks()
        if layout.format == "json":
            return self.no_objects(), NOT_AN_OBJECT
        return self.divided(), _DIVIDED

    def no_objects(self) -> Flags:
        """Return which lines are not JSON objects; lines of blanks are emptied instead."""
        usual = (self.data[self.starts] == _OPENS) & (self.data[self.stops - 1] == _CLOSES)
        wrong = np.zeros(len(self.starts), np.bool_)
        for at in np.flatnonzero(~usual & (self.stops > self.starts)).tolist():
            text = self.text(at).strip(BLANKS)
            if not text:
                self.stops[at] = self.begins[at]
            elif not (text[0] == _OPENS and text[-1] == _CLOSES):
                wrong[at] = True
        return wrong

    def pass_marks(self) -> None:
        """Strip byte order marks from the start of every line."""
        for at in np.flatnonzero(self.data[self.starts] == MARK[0]).tolist():
            while self.text(at).startswith(MARK):
                self.begins[at] += len(MARK)

    def divided(self) -> Flags:
        """Return which lines contain a carriage return, which the csv parser takes for a line end."""
        returns = np.flatnonzero(self.data == _RETURN)
        lines = np.searchsorted(self.ends, returns, side="right")
        wrong = np.zeros(len(self.ends), np.bool_)
        wrong[lines[returns < self.stops[lines]]] = True
        return wrong

    def pieces(self, kept: Flags, offset: int) -> TextPieces:
        """Return the lines to be parsed."""
        begins, ends = self.begins[kept], self.ends[kept]
        bounds = np.concatenate([[0], np.cumsum(ends - begins)])
        change = np.zeros(len(self.block) + 1, np.int8)
        change[begins] = 1
        change[ends] -= 1
        text = self.data[np.cumsum(change[:-1], dtype=np.int8).view(np.bool_)].tobytes()
        return TextPieces(text, bounds, self.starts[kept] + offset)
