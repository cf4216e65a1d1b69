"""An order of rows by their content alone: what decides where a number of rows must be chosen among equals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skypane.preference.ranks import column_ranks
from skypane.preference.schema import is_orderable
from skypane.types import IntArray


def content_keys(table: pa.Table, columns: Sequence[str] | None = None) -> list[NDArray[Any]]:
    """Return keys, each of shape (n,), whose lexicographic order is one of content over `columns`, by default all.

    Ascending by column, NaN and then nulls last; two rows have equal keys exactly when they show no difference. Nested
    columns have no order of their own and are ordered by how they print.
    """
    keys: list[NDArray[Any]] = []
    for column in table.columns if columns is None else table.select(columns).columns:
        if not is_orderable(column.type):
            keys.append(_printed_ranks(column))
            continue
        keys.append(column_ranks(column))
        if pa.types.is_floating(column.type):
            keys.append(~np.signbit(column.to_numpy()))  # -0.0 before 0.0, which rank as equal
    return keys


def _printed_ranks(column: pa.ChunkedArray) -> IntArray:
    printed = [repr(value) for value in column.to_pylist()]
    ranks: IntArray = np.unique(printed, return_inverse=True)[1] if printed else np.empty(0, np.int64)
    return ranks
