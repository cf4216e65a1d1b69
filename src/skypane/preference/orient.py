"""Conversion of one level of a preference over Arrow columns to smaller-is-better points.

Dominance needs order and equality only, so values that float64 cannot hold exactly (integers beyond 2**53, decimals,
texts) become dense ranks within the call. Ranks of different calls are not comparable. Points of one call are
comparable with each other; points that are `lasting` are also comparable with the lasting points of other calls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skypane.preference.around import exact_distances, float_distances, whole_distances
from skypane.preference.criteria import Around, Component, Criterion, High, Level
from skypane.preference.dense_ranks import column_ranks, rankable, row_ranks
from skypane.types import BadInputError, FloatArray
from skypane.wording import counted

_EXACT = 2**53
"""float64 represents every integer up to this magnitude exactly."""


class OrientedPoints(NamedTuple):
    """Points (n, d), Fortran-ordered; `lasting`: no column holds ranks, so points of other calls are comparable."""

    values: FloatArray
    lasting: bool


def orient(table: pa.Table, level: Level) -> OrientedPoints:
    """Return points with one column per component of `level`, smaller is better, without NaN.

    Raises BadInputError, naming the column, if a criterion is null or NaN in a row.
    """
    points = np.empty((table.num_rows, len(level)), np.float64, order="F")
    lasting = [_write_component(table, component, points[:, j]) for j, component in enumerate(level)]
    # maximum propagates NaN, so one pass without a mask finds it
    if np.isnan(points.max(initial=-np.inf)):
        _refuse_nan(points, level)
    return OrientedPoints(points, all(lasting))


def _refuse_nan(points: FloatArray, level: Level) -> None:
    counts = np.isnan(points).sum(axis=0)
    j = int(counts.argmax())
    raise BadInputError(
        f"column {level[j][0].column!r} is NaN in {counted(int(counts[j]), 'rows')}; drop or fill them first"
    )


def _write_component(table: pa.Table, component: Component, out: FloatArray) -> bool:
    """Write a column of points; return whether it holds no ranks."""
    if len(component) == 1:
        return _write(table, component[0], out)
    singles = orient(table, tuple((criterion,) for criterion in component)).values
    out[:] = row_ranks([*singles.T])
    return False


def _write(table: pa.Table, criterion: Criterion, out: FloatArray) -> bool:
    column = table.column(criterion.column)
    if column.null_count:
        raise BadInputError(
            f"column {criterion.column!r} is null in {counted(column.null_count, 'rows')}; drop or fill them first"
        )
    if isinstance(criterion, Around):
        return _write_distances(column, criterion, out)
    lasting = _write_values(column, out)
    if isinstance(criterion, High):
        np.negative(out, out=out)
    return lasting


def _write_values(column: pa.ChunkedArray, out: FloatArray) -> bool:
    kind = column.type
    if pa.types.is_floating(kind):
        _copy_chunks(column, out)
        return True
    if is_whole(kind):
        return _write_whole(whole_numbers(column), out)
    out[:] = column_ranks(column)
    return False


def _write_distances(column: pa.ChunkedArray, criterion: Around, out: FloatArray) -> bool:
    column = rankable(column)
    kind = column.type
    if pa.types.is_floating(kind):
        out[:] = float_distances(column.to_numpy(), criterion)
        return True
    if is_whole(kind):
        values = whole_numbers(column)
        if (away := whole_distances(values, criterion, kind)) is not None:
            return _write_whole(away, out)
        column = pa.chunked_array([values])
    out[:] = column_ranks(exact_distances(column, criterion, kind))
    return False


def _write_whole(values: NDArray[Any], out: FloatArray) -> bool:
    if values.itemsize < 8 or len(values) == 0 or max(int(values.max()), -int(values.min())) <= _EXACT:
        out[:] = values
        return True
    out[:] = row_ranks([values])
    return False


def _copy_chunks(column: pa.ChunkedArray, out: FloatArray) -> None:
    """Copy chunk by chunk: NumPy views the buffer of each chunk, and no intermediate copy is made."""
    start = 0
    for chunk in column.chunks:
        stop = start + len(chunk)
        out[start:stop] = chunk.to_numpy()
        start = stop


def is_whole(kind: pa.DataType) -> bool:
    """Return whether values of `kind` are stored as integers: integers, booleans, times and durations."""
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_temporal))


def whole_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return integers, booleans or times as their stored integers, shape (n,)."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    values: NDArray[Any] = column.to_numpy()
    return values
