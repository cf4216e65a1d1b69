"""A digest of the rows of a batch by columns, for sinks that take tables; batch_digest.py is for those that take lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.kernels.hashing import mixed
from skypane.operators.aggregates.list_columns import whole
from skypane.operators.aggregates.stable_hashes import can_be_hashed, hashes_of
from skypane.runtime.spark.sinks import text_format
from skypane.types import IntArray

_ALL: Final = 1 << 64


def rows_digest(parts: Iterable[pa.Table]) -> str:
    """Return the number of rows, and the sum of their hashes, which does not depend on their order or their parts."""
    count = total = 0
    for part in parts:
        count += part.num_rows
        total += int(row_hashes(part).view(np.uint64).sum(dtype=np.uint64))
    return json.dumps({"rows": count, "digest": f"{total % _ALL:x}"})


def row_hashes(rows: pa.Table) -> IntArray:
    """Return a 64-bit hash of each row, the same in every process; equal rows have equal hashes."""
    hashes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        values = whole(column if can_be_hashed(column.type) else _as_json(column))
        missing = values.is_null().to_numpy(zero_copy_only=False)
        hashes = mixed(hashes + np.where(missing, 1, hashes_of(values)))
    return hashes


def _as_json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    objects = text_format.json_objects(pa.table({"value": column}))
    return pa.chunked_array([[text_format.json_text(row) for row in some] for some in objects], pa.string())
