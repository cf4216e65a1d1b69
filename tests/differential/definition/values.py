"""Columns as plain Python values or NumPy integers; how values are ordered, and which are one key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
FIRST, LAST = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999 in seconds, half-open."""


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Return numbers, truth values, texts, lists and structs as Python has them; times as the integers that they are stored as."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(_stored(kind))
    if pa.types.is_list(kind) and pa.types.is_temporal(kind.value_type):
        column = column.cast(pa.list_(_stored(kind.value_type)))
    values: list[Any] = column.to_pylist()
    return values


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def micros(column: pa.ChunkedArray) -> list[int | None]:
    """Return times in microseconds, rounded down; None for those that are null or outside the years 1 to 9999."""
    per_second = PER_SECOND[column.type.unit]
    inside = range(FIRST * per_second, LAST * per_second)
    return [None if t is None or t not in inside else t * 1_000_000 // per_second for t in plain(column)]


def dense(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each value among the different ones, ascending, (n,); -0.0 is 0.0, and there is no NaN."""
    array = np.asarray(values)
    if array.dtype.kind in "iufb":
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int64)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def key(value: Any) -> Any:
    """Return what is equal for values that are one key: null is one, NaN is one, -0.0 is 0.0."""
    return "NaN" if is_nan(value) else value + 0.0 if isinstance(value, float) else value


def order(value: Any) -> tuple[Any, ...]:
    """Return what sorts values by content: -0.0 before 0.0, NaN after all numbers, null last."""
    if value is None:
        return (2,)
    if isinstance(value, float):
        return (1,) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return (0, value)


def order_of_key(one: Sequence[Any]) -> tuple[Any, ...]:
    """Return what sorts keys, in which NaN is a text."""
    return tuple(order(math.nan if value == "NaN" else value) for value in one)


def lines(rows: pa.Table) -> list[dict[str, Any]]:
    """Return each row, as plain values by the names of the columns."""
    columns = {name: plain(rows.column(name)) for name in rows.column_names}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def keys(rows: pa.Table, by: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the key of each row."""
    columns = [[key(value) for value in plain(rows.column(name))] for name in by]
    return list(zip(*columns, strict=True)) if by else [()] * rows.num_rows


def groups(rows: pa.Table, by: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each row's key, (n,)."""
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(one, len(numbers)) for one in keys(rows, by)], np.int64)
