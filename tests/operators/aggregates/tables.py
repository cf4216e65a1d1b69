"""Rows full of nulls, ties and unusual numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "grade": pa.float64(),
        "f": pa.float64(),
        "small": pa.float32(),
        "i": pa.int64(),
        "flag": pa.bool_(),
        "text": pa.string(),
        "at": pa.timestamp("us", "UTC"),
    }
)
NAN, INF = float("nan"), float("inf")
VALUES: dict[str, list[Any]] = {
    "key": ["a", "b", "", None],
    "grade": [0.0, -0.0, NAN, 1.5, None],
    "f": [0.0, -0.0, 0.1, 0.2, -0.3, 1e9, 1e16, -1e16, 1e-9, INF, -INF, NAN, None],
    "small": [0.5, -1.25, None],
    "i": [-3, -1, 0, 2, 7, 2**40, None],
    "flag": [True, False, None],
    "text": ["x", "y", "zz", "", None],
    "at": [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(5)],
}


def tables(most: int = 24) -> st.SearchStrategy[pa.Table]:
    """Tables of SCHEMA."""
    row = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
    return st.lists(row, max_size=most).map(lambda rows: pa.Table.from_pylist(rows, schema=SCHEMA))


def drawn(
    rng: np.random.Generator, size: int, of: Mapping[str, list[Any]] = VALUES, schema: pa.Schema = SCHEMA
) -> pa.Table:
    """Return rows of some values of each column."""
    rows = [{name: values[rng.integers(len(values))] for name, values in of.items()} for _ in range(size)]
    return pa.Table.from_pylist(rows, schema=schema)
