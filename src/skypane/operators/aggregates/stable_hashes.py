"""Hashes of values and keys that are the same in every process, to count distinct values and to divide keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.kernels.column_layout import frozen
from skypane.kernels.hashing import hash_bytes, mixed
from skypane.operators.aggregates.list_columns import whole
from skypane.operators.aggregates.ordered_int64 import fits, keys_of
from skypane.preference.column_checks import is_text, value_type
from skypane.types import IntArray


def hashes_of(values: pa.Array) -> IntArray:
    """Return 64-bit hashes that are the same in every process; equal values have equal hashes."""
    if fits(values.type):
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 + 0.0 = 0.0
        return mixed(keys_of(values))
    texts = pa.concat_arrays([values.cast(pa.large_binary())])
    _, offsets, data = texts.buffers()
    edges: IntArray = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content: NDArray[np.uint8] = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return mixed(hash_bytes(frozen(content), frozen(edges)))


def can_be_hashed(kind: pa.DataType) -> bool:
    """Return whether values of the type have hashes: numbers, booleans, dates, times and texts."""
    return fits(kind) or is_text(kind)


def key_hashes(rows: pa.Table, by: Sequence[str]) -> IntArray:
    """Return a hash of each row's key; equal keys have equal hashes. All columns must be hashable."""
    hashes = np.zeros(rows.num_rows, np.int64)
    for name in by:
        column = rows.column(name)
        hashes = mixed(hashes + hashes_of(whole(column.cast(value_type(column.type)))))
    return hashes
