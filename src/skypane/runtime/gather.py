"""Small tables gathered into large ones: lifting, and writing a row group, cost something however few the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


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
