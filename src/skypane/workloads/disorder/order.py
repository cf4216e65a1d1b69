"""Reordering of a stream from event time to arrival, buffering only rows that may still be overtaken."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from skypane.types import IntArray


def micros_of(batch: pa.RecordBatch, column: str) -> IntArray:
    """Return a timestamp column as int64 microseconds, without a copy."""
    return np.asarray(batch.column(column).view(pa.int64()).to_numpy())


def by_arrival(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches` in ascending order of `arrival`; rows of equal arrival keep their order.

    The batches must ascend in `time`. No arrival may precede its time: rows that arrive up to the newest time seen can
    then no longer be overtaken.
    """
    under_way: list[pa.RecordBatch] = []
    waiting = fresh = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        under_way.append(batch)
        fresh += batch.num_rows
        # Sort only when at least as many rows are new as were buffered: the work per row stays constant for any delays.
        if fresh < waiting:
            continue
        rows = _sorted(under_way)
        ready = int(np.searchsorted(micros_of(rows, "arrival"), micros_of(batch, "time")[-1], side="right"))
        yield rows.slice(0, ready)
        under_way, waiting, fresh = [rows.slice(ready)], rows.num_rows - ready, 0
    if under_way:
        yield _sorted(under_way)


def _sorted(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    rows = pa.concat_batches(batches)
    arrivals = micros_of(rows, "arrival")
    if (arrivals[1:] >= arrivals[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(arrivals, kind="stable")))
