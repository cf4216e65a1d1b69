"""The reasons why rows may not enter a query: one reason per row, the first that applies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.operators.entry.raw_text import unpacked
from skypane.types import BoolArray

LATE = "late"
FUTURE = "future"
AHEAD, BEHIND = "clock ahead", "clock behind"
"""Reasons for rows of a source whose clock is off, if they are quarantined."""
REASON = "reason"
"""Name of the column with the reason why a row was rejected."""

_FLOATS = (pa.types.is_float64, pa.types.is_float32, pa.types.is_float16)


def rankable(rows: pa.Table, required: tuple[str, ...]) -> tuple[pa.Table, dict[str, int]]:
    """Return the rows without null or NaN in the `required` columns, and the number of other rows by reason."""
    rows = rows.combine_chunks()
    reasons = RejectReasons(rows.num_rows)
    reasons.add_unrankable(rows, required)
    bad = reasons.any_rejected
    return (rows if bad is None else rows.take(pa.array(np.flatnonzero(~bad)))), reasons.counts()


class RejectReasons:
    """The reasons why rows may not enter: at most one per row, the first that applies."""

    def __init__(self, row_count: int) -> None:
        self._row_count = row_count
        self._names: list[str] = []
        self._codes: NDArray[np.uint16] | None = None

    def add(self, name: str, where: BoolArray | None) -> None:
        if where is None or not where.any():
            return
        if self._codes is None:
            self._codes = np.zeros(self._row_count, np.uint16)
        self._names.append(name)
        self._codes[where & (self._codes == 0)] = len(self._names)

    def add_unrankable(self, rows: pa.Table, required: tuple[str, ...]) -> None:
        for name in required:
            column = rows.column(name)
            if column.null_count:
                self.add(f"null {name}", is_null(column))
            if any(is_float(column.type) for is_float in _FLOATS):
                self.add(f"NaN {name}", _nan(column))

    def withdraw(self, where: BoolArray) -> None:
        """Take back the reasons of the rows of a mask."""
        if self._codes is not None:
            self._codes[where] = 0

    @property
    def any_rejected(self) -> BoolArray | None:
        return None if self._codes is None else self._codes > 0

    def mask(self, name: str) -> BoolArray | None:
        if self._codes is None or name not in self._names:
            return None
        where: BoolArray = self._codes == self._names.index(name) + 1
        return where

    def counts(self) -> dict[str, int]:
        if self._codes is None:
            return {}
        counts = np.bincount(self._codes, minlength=len(self._names) + 1)
        return {name: int(n) for name, n in zip(self._names, counts[1:], strict=True) if n}

    def rejected(self, rows: pa.Table) -> pa.Table:
        """Return the rejected rows with their raw text, if it came with them, and their reasons."""
        codes = np.zeros(self._row_count, np.uint16) if self._codes is None else self._codes
        where = np.flatnonzero(codes)
        names = pa.array(self._names, pa.string()).take(pa.array(codes[where] - np.uint16(1)))
        return unpacked(rows.take(pa.array(where))).append_column(REASON, names)


def is_null(column: pa.ChunkedArray) -> BoolArray:
    """Return the mask of the nulls in a column."""
    where: BoolArray = pc.is_null(column).to_numpy()
    return where


def _nan(column: pa.ChunkedArray) -> BoolArray | None:
    values = column.to_numpy() if not column.null_count else pc.fill_null(column, 0.0).to_numpy()
    where: BoolArray = np.isnan(values)
    return where
