"""Rows that wait to be lifted together: kernels are fastest on whole panes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skypane.operators.memory_estimates import step_bytes
from skypane.types import IntArray

BUFFER_ROWS: Final = 1_000_000
"""Rows buffered before they are lifted: kernels are fastest on whole panes, and memory is the limit."""
BUFFER_BYTES: Final = 256 << 20
"""Bytes buffered before they are lifted: a million rows with long texts would take gigabytes."""


class RowBuffer:
    """The rows that one worker has read and not lifted; it is full with `most_rows` rows, or BUFFER_BYTES."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._batches: list[pa.RecordBatch] = []
        self._units: list[IntArray] = []
        self.rows = self.bytes = 0
        #: the estimated bytes for lifting the rows
        self.lifting = 0

    def add(self, batch: pa.RecordBatch, units: IntArray | None) -> bool:
        """Add rows, all batches with their units or none, and return whether the buffer is full."""
        self._batches.append(batch)
        if units is not None:
            self._units.append(units)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        self.lifting += lifting_bytes(batch)
        return self.rows >= self._most_rows or self.bytes >= BUFFER_BYTES

    def take(self) -> tuple[pa.Table, IntArray | None] | None:
        """Empty the buffer, and return its rows and the unit of each, if these are known; None if there are no rows."""
        batches, units = self._batches, self._units
        self._batches, self._units, self.rows, self.bytes, self.lifting = [], [], 0, 0, 0
        return (pa.Table.from_batches(batches), np.concatenate(units) if units else None) if batches else None


def lifting_bytes(batch: pa.RecordBatch) -> int:
    """Return the estimated bytes for sorting rows into panes and lifting them."""
    return int(batch.nbytes) + step_bytes([pa.Table.from_batches([batch])])
