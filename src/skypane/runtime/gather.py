"""Tables on their way: small ones gathered into large ones, because each costs something however small; and as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from skypane.runtime.narrow import narrowed, widened


def gathered(tables: Iterable[pa.Table], row_count: int) -> Iterator[pa.Table]:
    """Yield the same rows, in order, in tables of at least `row_count` rows, the last one excepted; nothing is copied."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        if count >= row_count:
            yield pa.concat_tables(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def as_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield each batch as a table."""
    return (pa.Table.from_batches([batch]) for batch in batches)


def encoded(table: pa.Table) -> pa.Buffer:
    """Return the table as one Arrow stream, in a single batch, its integers narrow."""
    table = narrowed(table.combine_chunks())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decoded(stream: pa.Buffer) -> pa.Table:
    """Return the table of which encoded() made the stream; only narrow integers are copied."""
    return widened(pa.ipc.open_stream(stream).read_all())
