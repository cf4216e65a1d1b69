"""Messages of one row each, csv or JSON, as Arrow columns. One that is not a row becomes a row of nulls that says what it was.

Many messages are parsed at once; only where that fails are they halved, until those that are no rows stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from skypane.naming import shortened
from skypane.runtime.spark.sources.many.lines import MISTAKES, Layout, Malformed, parsed, sentence


def tables(layout: Layout, values: Sequence[bytes], offsets: Sequence[int]) -> Iterator[pa.Table | Malformed]:
    """Yield tables of the messages, in order, and between them those that are no row."""
    if layout.format == "csv":
        values = [value.rstrip(b"\r\n") for value in values]
    yield from _tables(layout, values, offsets)


def _tables(layout: Layout, values: Sequence[bytes], offsets: Sequence[int]) -> Iterator[pa.Table | Malformed]:
    if not values:
        return
    wrong = ""
    try:
        if not (wrong := _no_row(layout.format, values)):
            table = parsed(layout, b"\n".join(values) + b"\n")
            if len(table) == len(values):
                yield table
                return
            wrong = f"a message is a row, and here are {len(table):,} in {len(values):,}"
    except MISTAKES as error:
        wrong = sentence(error)
    if len(values) == 1:
        yield Malformed(offsets[0], shortened(values[0].decode(errors="replace")), wrong)
        return
    middle = len(values) // 2
    yield from _tables(layout, values[:middle], offsets[:middle])
    yield from _tables(layout, values[middle:], offsets[middle:])


def _no_row(format_: str, values: Sequence[bytes]) -> str:
    """Return what keeps these messages from being a row each, which the number of rows that they parse to cannot tell.

    What is passed cannot hide two rows in one message and none in another. csv is cut at line ends, of which there are
    none; in JSON, "}", a line end and "{" are never within an object, so each message holds a whole number of objects.
    """
    if format_ == "json":
        whole = all(value[:1] == b"{" and value[-1:] == b"}" for value in map(bytes.strip, values))
        return "" if whole else "a message must be an object, from { to }"
    if not all(values):
        return "the message is empty"
    together = b"".join(values)
    return "the message has lines, and must be one" if b"\n" in together or b"\r" in together else ""
