"""Groups of rows as integer codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.preference.dense_ranks import rankable, row_ranks
from skypane.types import IntArray

_ROOM = 2**62
_SPARSE = 4
"""Integers serve as their own codes if their range is less than this many times the number of rows."""


def group_codes(table: pa.Table, by: Sequence[str]) -> IntArray | None:
    """Return a code per row, shape (n,), equal exactly for rows that agree on all columns of `by`; None if it is empty.

    Nulls agree with nulls, NaN with NaN, -0.0 with 0.0. The codes depend on the order of rows; the grouping does not.
    """
    if not by:
        return None
    codes, size = _codes(table.column(by[0]))
    for name in by[1:]:
        more, more_size = _codes(table.column(name))
        if size * more_size > _ROOM:
            codes = row_ranks([codes])
            size = table.num_rows
        codes = codes * more_size + more
        size *= more_size
    return codes


def _codes(column: pa.ChunkedArray) -> tuple[IntArray, int]:
    """Return codes in [0, size) and size >= 1."""
    values = rankable(column)
    if pa.types.is_integer(values.type) and not values.null_count and len(values):
        numbers = values.to_numpy()
        least, most = int(numbers.min()), int(numbers.max())
        if most - least < _SPARSE * len(numbers):  # faster than a dictionary lookup per row
            wide = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64)
            return (wide - wide.dtype.type(least)).astype(np.int64), most - least + 1
    if pa.types.is_floating(values.type):
        zero, nan = (pa.scalar(x, values.type) for x in (0.0, float("nan")))
        values = pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))  # one NaN, and -0.0 + 0.0 = 0.0
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: IntArray = encoded.indices.to_numpy().astype(np.int64)
    return codes, max(1, len(encoded.dictionary))
