"""An order of rows by their content alone, which decides when some of several equal rows must be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skypane.preference.column_checks import is_orderable
from skypane.preference.dense_ranks import column_ranks
from skypane.types import IntArray


def content_keys(table: pa.Table, columns: Sequence[str] | None = None) -> list[NDArray[Any]]:
    """Return keys, each of shape (n,), whose lexicographic order is that of the contents of `columns`, by default all.

    The order is ascending by column, with NaN and then nulls last. Two rows have equal keys exactly if their contents
    are indistinguishable. Nested columns have no order of their own; they are ordered by their printed form.
    """
    keys: list[NDArray[Any]] = []
    for column in table.columns if columns is None else table.select(columns).columns:
        if not is_orderable(column.type):
            keys.append(_printed_ranks(column))
            continue
        keys.append(column_ranks(column))
        if pa.types.is_floating(column.type):
            keys.append(~np.signbit(column.to_numpy()))  # -0.0 before 0.0, whose ranks are equal
    return keys


def _printed_ranks(column: pa.ChunkedArray) -> IntArray:
    printed = [repr(value) for value in column.to_pylist()]
    ranks: IntArray = np.unique(printed, return_inverse=True)[1] if printed else np.empty(0, np.int64)
    return ranks
