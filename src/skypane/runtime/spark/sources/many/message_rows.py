"""Parse messages of csv or JSON into Arrow columns, one row each; report malformed messages with their offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from skypane.runtime.row_parser import (
    BLANKS,
    MARK,
    NOT_AN_OBJECT,
    Malformed,
    RowFormat,
    TextPieces,
    rows_of,
)


def tables(layout: RowFormat, values: Sequence[bytes], offsets: Sequence[int]) -> Iterator[pa.Table | Malformed]:
    """Yield tables of the messages, in order; malformed messages are yielded between or before the tables."""
    values = [value.removeprefix(MARK) for value in values]
    if layout.format == "csv":
        values = [value.rstrip(b"\r\n") for value in values]
    wrong = [_no_row(layout.format, value) for value in values]
    for value, offset, error in zip(values, offsets, wrong, strict=True):
        if error:
            yield Malformed(offset, value, error, layout.form)
    kept = [at for at, error in enumerate(wrong) if not error]
    lengths = [0, *(len(values[at]) + 1 for at in kept)]
    text = b"".join(values[at] + b"\n" for at in kept)
    yield from rows_of(layout, TextPieces(text, np.cumsum(lengths), np.array([offsets[at] for at in kept], np.int64)))


def _no_row(format_: str, value: bytes) -> str:
    """Return why a message is not a row, as far as this is known without parsing; else an empty string."""
    if format_ == "json":
        text = value.strip(BLANKS)
        return "" if text[:1] == b"{" and text[-1:] == b"}" else NOT_AN_OBJECT
    if not value:
        return "the message is empty"
    return "the message has lines, and must be one" if b"\n" in value or b"\r" in value else ""
