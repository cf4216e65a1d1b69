"""The rows of a text of lines: of a growing file, or of an object, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from skypane.runtime.columns_to_read import names_of
from skypane.runtime.growing_files import LineBlock
from skypane.runtime.line_rows import header, parse_all, without_end
from skypane.runtime.row_parser import Malformed, RowFormat
from skypane.runtime.spark.sources.many.line_numbers import LineNumbers


class LinedText(Protocol):
    """A text of lines."""

    def first_line(self) -> LineBlock: ...

    def blocks(self, start: int, end: Any, /) -> Iterable[LineBlock]:
        """Yield the lines of [start, end); where a text has an end that is not known, None stands for it."""


def rows_of_text(
    text: LinedText,
    lines: LineNumbers,
    form: str,
    columns: pa.Schema,
    start: int,
    end: int | None,
    *,
    names_columns: bool,
) -> Iterator[pa.Table | Malformed]:
    """Yield the rows of lines in [start, end); those that do not parse with their numbers.

    form           csv or json
    names_columns  whether the first line of the text names the columns
    """

    def parsed(begin: int, stop: int | None) -> Iterator[pa.Table | Malformed]:
        return map(lines.numbered, parse_all(RowFormat(form, columns, written), lines.blocks(text.blocks(begin, stop))))

    written = tuple(columns.names)
    if names_columns and (first := text.first_line()).end:
        wrong, begin = "", start
        try:
            written = names_of(columns, header(first.text))
            if first.start and columns.names and not set(written) & set(columns.names):
                wrong = "the line that names the columns is damaged, and the next one names none of them"
        except ValueError as error:
            wrong, begin = f"of the line that names the columns, {error}", max(start, first.end)
        if wrong:
            yield from map(lines.numbered, _unnamed(lines.blocks(text.blocks(begin, end)), wrong))
            return
        if start < first.start:  # what was before it is damaged
            yield from parsed(start, first.start)
        elif start == 0:
            lines.known(first.end, 1)
        start = max(start, first.end)
    yield from parsed(start, end)


def _unnamed(blocks: Iterable[LineBlock], wrong: str) -> Iterator[Malformed]:
    """Yield the lines of a text of which it is not known which of their values is of which column."""
    for block in blocks:
        if block.error:
            yield Malformed(block.start, without_end(block.text), block.error)
            continue
        at = block.start
        for line in block.text.removesuffix(b"\n").split(b"\n"):
            yield Malformed(at, without_end(line), wrong)
            at += len(line) + 1
