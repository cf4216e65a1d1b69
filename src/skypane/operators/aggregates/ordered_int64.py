"""Values as int64 keys in the same order, and back; minima and maxima compare these keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.kernels import keyed
from skypane.types import BoolArray, FloatArray, IntArray

_LAST = np.iinfo(np.int64).max


def fits(kind: pa.DataType) -> bool:
    """Return whether values of the type have keys: numbers, booleans, dates and times; not texts, bytes or decimals."""
    t = pa.types
    tests = (t.is_signed_integer, t.is_floating, t.is_boolean, t.is_date, t.is_timestamp, t.is_duration)
    return any(test(kind) for test in tests) and not t.is_float16(kind)


def keys_of(values: pa.Array) -> IntArray:
    """Return a key for each value, 0 for null; the key of NaN is the largest, that of -0.0 is less than that of 0.0."""
    kind = values.type
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0, pa.int64()).cast(_storage(kind)).cast(kind))
    if pa.types.is_floating(kind):
        return float_keys(np.asarray(values.to_numpy(zero_copy_only=False), np.float64))
    return np.ascontiguousarray(values.cast(_storage(kind)).to_numpy(zero_copy_only=False), np.int64)


def values_of(keys: IntArray, kind: pa.DataType, missing: BoolArray, *, largest: bool = False) -> pa.Array:
    """Return the values with these keys, null where they are missing; `largest`: the keys have been inverted."""
    if pa.types.is_floating(kind):
        return nullable(keyed.numbers_of(keys, largest), missing).cast(kind)
    keys = ~keys if largest else keys
    return nullable(np.where(missing, 0, keys), missing).cast(_storage(kind)).cast(kind)


def nullable(numbers: NDArray[Any], missing: BoolArray) -> pa.Array:
    """Return numbers as an Arrow array, null where they are missing; not copied if none is missing."""
    return pa.array(numbers, mask=missing) if missing.any() else pa.array(numbers)


def float_keys(numbers: FloatArray) -> IntArray:
    """Return integers in the order of float64 numbers."""
    bits = np.ascontiguousarray(numbers).view(np.int64)
    # IEEE 754 numbers are sign and magnitude; inverting the magnitude bits of negative numbers gives two's complement.
    keys = bits ^ ((bits >> 63) & _LAST)
    unknown = np.isnan(numbers)
    return np.where(unknown, _LAST, keys) if unknown.any() else keys


def _storage(kind: pa.DataType) -> pa.DataType:
    """Return the integer type in which values of a type are stored."""
    if pa.types.is_boolean(kind):
        return pa.int8()
    if pa.types.is_signed_integer(kind):
        return kind
    return pa.int32() if kind == pa.date32() else pa.int64()
