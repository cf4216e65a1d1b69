"""Dense ranks: small integers that keep order and equality of a column exactly where float64 cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.types import IntArray


def column_ranks(column: pa.ChunkedArray) -> IntArray:
    """Return the dense rank of each value in ascending order, shape (n,); NaN, then nulls, come last.

    Texts and bytes are ordered byte by byte (code points), as Spark's default collation does; -0.0 equals 0.0.
    """
    ranks: IntArray = pc.rank(rankable(column), sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    if column.null_count:
        # Until version 25, Arrow ranks NaN and null as equal.
        nulls = pc.is_null(column).to_numpy()
        ranks[nulls] = ranks[~nulls].max(initial=0) + 1
    return ranks


def row_ranks(keys: Sequence[NDArray[Any]]) -> IntArray:
    """Return the dense rank of each row, shape (n,), in the order of keys[0], then keys[1], ...; keys hold no NaN."""
    order = np.lexsort(keys[::-1])
    ranks = np.empty(len(order), np.int64)
    new = np.zeros(len(order), np.bool_)
    for key in keys:
        sorted_key = key[order]
        new[1:] |= sorted_key[1:] != sorted_key[:-1]
    ranks[order] = np.cumsum(new)
    return ranks


def rankable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return `column` cast, with the same order, to a type that Arrow can rank."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return rankable(column.cast(kind.value_type))
    if pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if kind == pa.string_view():
        return column.cast(pa.large_string())
    if kind == pa.binary_view():
        return column.cast(pa.large_binary())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column
