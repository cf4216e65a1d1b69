"""Columns of integers in as few bytes as their values need: the form of partials in transfers and in checkpoints.

The state of an aggregate is a row of 64-bit integers, most of which are small, or equal for every key. Each column is
stored as the difference from its smallest value, in 8, 16, 32 or 64 bits; a column with a single value is not stored.

    state: [[1, 33, 70_000], [2, 33, 70_010]]   ->   smallest 1, 33, 70_000   and   uint8 [0, 1], nothing, uint8 [0, 10]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skypane.types import IntArray

FEWEST: Final = 256
"""Smallest number of rows to narrow: each column costs some microseconds, however short it is."""
_WIDE: Final = b"skypane.wide"
"""Metadata key of the original schema in a narrow table."""
_LEAST: Final = b"skypane.least"
"""Metadata key of the smallest values of integer columns, by name, one for each position of a list."""
_KINDS: Final = (np.uint8, np.uint16, np.uint32)


def narrowed(table: pa.Table) -> pa.Table:
    """Return the narrow form of a table, which widened() reverses; small tables, or without integers, are unchanged."""
    if table.num_rows < FEWEST or not any(_width(field) for field in table.schema):
        return table
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    least: dict[str, list[int]] = {}
    for number, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        if not _width(field) or column.null_count:
            columns[f"{number}"] = column
            continue
        least[f"{number}"] = []
        for place, values in enumerate(_integers(column, _width(field)).T):
            smallest, kept = _narrow(values)
            least[f"{number}"].append(smallest)
            if kept is not None:
                columns[f"{number}.{place}"] = pa.array(kept)
    metadata = {_WIDE: table.schema.serialize().to_pybytes(), _LEAST: json.dumps(least).encode()}
    rows = columns or {"rows": pa.nulls(table.num_rows)}  # keeps the number of rows
    return pa.table(rows).replace_schema_metadata(metadata)


def widened(table: pa.Table) -> pa.Table:
    """Return the original of a table that narrowed() returned."""
    metadata = table.schema.metadata or {}
    if _LEAST not in metadata:
        return table
    schema = pa.ipc.read_schema(pa.py_buffer(metadata[_WIDE]))
    return pa.Table.from_arrays(list(_columns(table, schema, json.loads(metadata[_LEAST]))), schema=schema)


def _columns(table: pa.Table, schema: pa.Schema, least: dict[str, list[int]]) -> Iterator[Any]:
    for number, field in enumerate(schema):
        if (name := f"{number}") not in least:
            yield table.column(name)
            continue
        matrix = np.empty((table.num_rows, len(least[name])), np.int64)
        for place, smallest in enumerate(least[name]):
            if (kept := f"{number}.{place}") in table.schema.names:
                np.add(table.column(kept).to_numpy(), np.int64(smallest), out=matrix[:, place], casting="unsafe")
            else:
                matrix[:, place] = smallest
        values = pa.array(matrix.reshape(-1))
        yield values if field.type == pa.int64() else pa.FixedSizeListArray.from_arrays(values, type=field.type)


def _width(field: pa.Field) -> int:
    """Return the number of 64-bit integers in a value of the column; 0 for other types."""
    if field.type == pa.int64():
        return 1
    is_list = pa.types.is_fixed_size_list(field.type) and field.type.value_type == pa.int64()
    return field.type.list_size if is_list else 0


def _integers(column: pa.ChunkedArray, width: int) -> IntArray:
    whole = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
    values = whole.flatten() if pa.types.is_fixed_size_list(whole.type) else whole
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, width)


def _narrow(values: IntArray) -> tuple[int, NDArray[Any] | None]:
    """Return the smallest value, and the differences from it as narrow integers; None if all values are equal."""
    smallest = int(values.min())
    span = int(values.max()) - smallest
    if not span:
        return smallest, None
    for kind in _KINDS:
        if span <= np.iinfo(kind).max:
            return smallest, (values - smallest).astype(kind)
    return 0, np.ascontiguousarray(values)
