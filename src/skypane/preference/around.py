"""Distances of values to a target: exact for integers and times, in float64 for all other types."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skypane.preference.criteria import Around, Target
from skypane.types import TICKS_PER_SECOND, ConfigError, FloatArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_target(criterion: Around, kind: pa.DataType) -> None:
    """Raise ConfigError if values of type `kind` have no distance to the target."""
    wanted = _wanted(kind)
    if wanted is None:
        raise ConfigError(
            f"around({criterion.column!r}) needs a column of numbers, dates or timestamps, got type {kind}"
        )
    if any(_kind_of(target) != wanted for target in (criterion.lo, criterion.hi)):
        raise ConfigError(f"{criterion!r}: a column of type {kind} needs {wanted} as its target")


def distances(values: NDArray[Any], criterion: Around, kind: pa.DataType) -> FloatArray | NDArray[np.uint64]:
    """Return the distance of each value to the interval [lo, hi], shape (n,), in the unit of the column.

    Whole targets on integer values (numbers, or the count of units in a date or timestamp) give exact uint64 distances.
    """
    lo, hi = _in_unit(criterion.lo, kind), _in_unit(criterion.hi, kind)
    if values.dtype.kind in "iu" and isinstance(lo, int) and isinstance(hi, int) and _fits(values, lo, hi):
        return _whole_distances(values, lo, hi)
    x = values.astype(np.float64)
    return np.maximum(np.maximum(float(lo) - x, x - float(hi)), 0.0)


def _whole_distances(values: NDArray[Any], lo: int, hi: int) -> NDArray[np.uint64]:
    wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64)
    # A distance is below 2**64, so a difference modulo 2**64 is exact.
    modular = wide.view(np.uint64)
    below = np.where(wide < lo, _modular(lo) - modular, np.uint64(0))
    return np.where(wide > hi, modular - _modular(hi), below)


def _modular(value: int) -> np.uint64:
    return np.uint64(value % 2**64)


def _fits(values: NDArray[Any], lo: int, hi: int) -> bool:
    limits = np.iinfo(np.int64 if values.dtype.kind == "i" else np.uint64)
    return int(limits.min) <= lo and hi <= int(limits.max)


def _in_unit(target: Target, kind: pa.DataType) -> int | float:
    """Return `target` as a number in the unit of a column of type `kind`; an int where it is whole."""
    if isinstance(target, datetime):
        aware = target if target.tzinfo else target.replace(tzinfo=UTC)
        micros = (aware - _EPOCH) // timedelta(microseconds=1)
        scaled = micros * TICKS_PER_SECOND[kind.unit]
        return scaled // 1_000_000 if scaled % 1_000_000 == 0 else scaled / 1_000_000
    if isinstance(target, date):
        days = (target - _EPOCH.date()).days
        return days * 86_400_000 if pa.types.is_date64(kind) else days
    return target


def _wanted(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "a number"
    if pa.types.is_date(kind):
        return "a date"
    if pa.types.is_timestamp(kind):
        return "a datetime without a time zone" if kind.tz is None else "a datetime with a time zone"
    return None


def _kind_of(target: Target) -> str:
    if isinstance(target, datetime):
        return "a datetime without a time zone" if target.tzinfo is None else "a datetime with a time zone"
    return "a date" if isinstance(target, date) else "a number"
