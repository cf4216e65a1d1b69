"""Group codes of rows: codes are equal exactly where keys are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.preference.dense_ranks import row_ranks
from skypane.preference.groups import group_codes
from skypane.types import IntArray

_SPARSE = 4
"""Codes are renumbered if there are more than this many per row: each code costs two words of memory."""


def dense_codes(rows: pa.Table, by: Sequence[str]) -> tuple[IntArray, int]:
    """Return a code per row, equal exactly where rows agree on all columns of `by`, and a number above all codes."""
    codes = group_codes(rows, by)
    if codes is None:
        return np.zeros(rows.num_rows, np.int64), 1
    size = int(codes.max(initial=0)) + 1
    if size <= _SPARSE * len(codes) + 1_024:
        return codes, size
    return row_ranks([codes]), len(codes)


def distinct_keys(rows: pa.Table, by: Sequence[str], firsts: IntArray) -> pa.Table:
    """Return the keys of the given rows, in one form whichever row of a key came first."""
    keys = rows.select(list(by)).take(pa.array(firsts))
    for number, field in enumerate(keys.schema):
        if pa.types.is_floating(field.type):
            keys = keys.set_column(number, field, _one_form(keys.column(number)))
    return keys


def _one_form(column: Any) -> Any:
    """Return floating-point numbers with one form of NaN, and with -0.0 as 0.0."""
    zero, nan = (pa.scalar(x, column.type) for x in (0.0, float("nan")))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
