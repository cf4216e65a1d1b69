"""Distances of values to a target: in float64 for floats, exact for all other types."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skypane.preference.criteria import Around, Target
from skypane.types import TICKS_PER_SECOND, ConfigError, FloatArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64_DIGITS: Final = 20
_WIDEST: Final = 75
"""Digits of a decimal of 256 bits, less one for a difference."""


def check_target(criterion: Around, kind: pa.DataType) -> None:
    """Raise ConfigError if values of type `kind` have no distance to the target."""
    wanted = _wanted(kind)
    if wanted is None:
        raise ConfigError(
            f"around({criterion.column!r}) needs a column of numbers, dates or timestamps, got type {kind}"
        )
    if any(_kind_of(target) != wanted for target in (criterion.lo, criterion.hi)):
        raise ConfigError(f"{criterion!r}: a column of type {kind} needs {wanted} as its target")
    if not pa.types.is_floating(kind) and _digits(criterion, kind)[0] > _WIDEST:
        raise ConfigError(f"{criterion!r}: the target has too many digits for a column of type {kind}")


def float_distances(values: NDArray[Any], criterion: Around) -> FloatArray:
    """Return the distance of each float to the interval [lo, hi], shape (n,)."""
    x = values.astype(np.float64)
    lo, hi = (float(target) for target in (criterion.lo, criterion.hi))  # type: ignore[arg-type] # check_target()
    with np.errstate(over="ignore"):  # beyond the largest number, a distance is infinite
        return np.maximum(np.maximum(lo - x, x - hi), 0.0)


def whole_distances(values: NDArray[Any], criterion: Around, kind: pa.DataType) -> NDArray[np.uint64] | None:
    """Return the distance of each integer, in the unit of a column of times, shape (n,); None if a target is another number."""
    lo, hi = _in_unit(criterion.lo, kind), _in_unit(criterion.hi, kind)
    return (
        _whole_distances(values, lo, hi)
        if isinstance(lo, int) and isinstance(hi, int) and _fits(values, lo, hi)
        else None
    )


def exact_distances(column: pa.ChunkedArray, criterion: Around, kind: pa.DataType) -> pa.ChunkedArray:
    """Return the distance of each value of a column of decimals or integers, those of times in the unit of `kind`."""
    wide = pa.decimal256(*_digits(criterion, kind))
    lo, hi = (pa.scalar(target, wide) for target in _exact_targets(criterion, kind))
    values = column.cast(pa.decimal128(_INT64_DIGITS, 0)) if pa.types.is_integer(column.type) else column
    values = values.cast(wide)
    beyond = pc.subtract(values, hi)
    within = pc.if_else(pc.greater(values, hi), beyond, pa.scalar(Decimal(0), beyond.type))
    return pc.if_else(pc.less(values, lo), pc.subtract(lo, values), within)


def _digits(criterion: Around, kind: pa.DataType) -> tuple[int, int]:
    """Return precision and scale of a decimal that holds values and targets."""
    scales = [-int(target.as_tuple().exponent) for target in _exact_targets(criterion, kind)]
    scale = max(0, kind.scale if pa.types.is_decimal(kind) else 0, *scales)
    return _whole_digits(kind) + 1 + scale, scale


def _exact_targets(criterion: Around, kind: pa.DataType) -> list[Decimal]:
    """Return lo and hi in the unit of the column; those beyond all values are as far from each as the end of the range."""
    most = Decimal(1).scaleb(_whole_digits(kind))
    found = (_in_unit(target, kind) for target in (criterion.lo, criterion.hi))
    return [min(max(Decimal(repr(one)) if isinstance(one, float) else Decimal(one), -most), most) for one in found]


def _whole_digits(kind: pa.DataType) -> int:
    return int(kind.precision - kind.scale) if pa.types.is_decimal(kind) else _INT64_DIGITS


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


def _in_unit(target: Target, kind: pa.DataType) -> int | float | Decimal:
    """Return `target` as a number in the unit of a column of type `kind`; an int where it is whole."""
    if isinstance(target, datetime):
        aware = target if target.tzinfo else target.replace(tzinfo=UTC)
        micros = (aware - _EPOCH) // timedelta(microseconds=1)
        scaled = micros * TICKS_PER_SECOND[kind.unit]
        return scaled // 1_000_000 if scaled % 1_000_000 == 0 else Decimal(scaled).scaleb(-6)
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
