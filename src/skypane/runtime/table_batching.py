"""Tables for transfers: small ones gathered into larger ones, since each has a fixed cost, and tables as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from skypane.runtime.narrow_integers import narrowed, widened

GROUP_BYTES = 256 << 20
"""The largest number of bytes to gather: few rows with long strings can take gigabytes."""


def gathered(tables: Iterable[pa.Table], row_count: int, byte_count: int = GROUP_BYTES) -> Iterator[pa.Table]:
    """Yield the same rows, in order, in tables of at least `row_count` rows or `byte_count` bytes; nothing is copied.

    The last one may have fewer.
    """
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        size += table.nbytes
        if rows >= row_count or size >= byte_count:
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def pieces(table: pa.Table, byte_count: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about `byte_count` bytes at most; nothing is copied."""
    yield from table.to_batches(max_chunksize=max(1, table.num_rows * byte_count // max(table.nbytes, 1)))


def as_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield each batch as a table."""
    return (pa.Table.from_batches([batch]) for batch in batches)


def encoded(table: pa.Table) -> pa.Buffer:
    """Return the table as an Arrow stream of a single record batch with narrow integers."""
    table = narrowed(table.combine_chunks())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decoded(stream: pa.Buffer) -> pa.Table:
    """Return the table of a stream from encoded(); only narrow integers are copied."""
    return widened(pa.ipc.open_stream(stream).read_all())
