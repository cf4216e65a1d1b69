"""Which windows there are, and which rows each has; which rows count at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.differential.case import TIME, Aggregate, IntArray, Spec, TopK, Windows
from tests.differential.definition.score import columns_of
from tests.differential.definition.values import is_nan, micros, plain


def required(spec: Spec) -> tuple[str, ...]:
    """Return the columns that need a value: without one a row is quarantined."""
    if isinstance(spec, TopK):
        return columns_of(spec.score)
    if isinstance(spec, Aggregate):
        return spec.required
    return spec.preference.columns


def usable(rows: pa.Table, spec: Spec) -> IntArray:
    """Return the indices of the rows that have a time and all that is required."""
    good = np.array([time is not None for time in micros(rows.column(TIME))], np.bool_)
    for name in required(spec):
        good &= np.array([value is not None and not is_nan(value) for value in plain(rows.column(name))], np.bool_)
    return np.flatnonzero(good)


def times(rows: pa.Table) -> IntArray:
    """Return the times of usable rows in microseconds."""
    return np.array(micros(rows.column(TIME)), np.int64)


def windows_of(time: int, windows: Windows) -> range:
    """Return the numbers of the windows that hold a time: k with offset + k * slide <= time < offset + k * slide + length."""
    since = time - windows.offset
    return range((since - windows.length) // windows.slide + 1, since // windows.slide + 1)


def members(when: IntArray, windows: Windows) -> list[tuple[int, IntArray]]:
    """Return the start of each window that holds a row, oldest first, and the indices of its rows."""
    found: dict[int, list[int]] = {}
    for row, time in enumerate(when.tolist()):
        for window in windows_of(time, windows):
            found.setdefault(window, []).append(row)
    return [(windows.offset + window * windows.slide, np.array(found[window], np.int64)) for window in sorted(found)]
