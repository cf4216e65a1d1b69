"""Rows full of nulls, ties and unusual numbers, and the functions that can be had of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import skypane as sp

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

FUNCTIONS: dict[str, Any] = {
    "rows": sp.count(),
    "values": sp.count("f"),
    "good": sp.count_if("f > 0 and text != 'x'"),
    "listed": sp.count("i", where="text in ('x', 'zz') or flag"),
    "sum_i": sp.sum("i"),
    "sum_f": sp.sum("f"),
    "sum_small": sp.sum("small", where="not flag"),
    "avg_i": sp.avg("i"),
    "avg_f": sp.avg("f"),
    "min_i": sp.min("i"),
    "max_f": sp.max("f"),
    "min_small": sp.min("small"),
    "min_text": sp.min("text"),
    "max_at": sp.max("at"),
    "max_flag": sp.max("flag"),
    "var_f": sp.variance("f"),
    "var_i": sp.var_pop("i"),
    "stddev_i": sp.stddev("i"),
    "stddev_small": sp.stddev_pop("small"),
    "first_f": sp.first("f"),
    "last_text": sp.last("text"),
    "i_of_max_f": sp.max_by("i", "f"),
    "text_of_min_i": sp.min_by("text", "i"),
    "texts": sp.collect_list("text"),
    "numbers": sp.collect_list("i", order="f", where="f < 1"),
    "starred": sp.count("*"),
    "mean_small": sp.mean("small", where="flag"),
    "all_flags": sp.bool_and("flag"),
    "any_flag": sp.bool_or("flag", where="i > 0"),
    "different": sp.count_distinct("f"),
    "set": sp.collect_set("f"),
    "set_of_texts": sp.collect_set("text", where="i > 0"),
    "mode_f": sp.mode("f"),
    "mode_text": sp.mode("text", where="not flag"),
    "median_f": sp.median("f"),
    "median_i": sp.median("i"),
    "parts_of_f": sp.percentile("f", [0.0, 0.3, 0.5, 1.0]),
    "part_of_small": sp.percentile("small", 0.9, where="flag"),
    "taken_of_f": sp.percentile_approx("f", (0.0, 0.25, 0.5, 1.0)),
    "taken_of_at": sp.percentile_approx("at", 0.4),
    "different_texts": sp.count_distinct("text", where="i > 0"),
}


def tables(most: int = 24) -> st.SearchStrategy[pa.Table]:
    """Tables of SCHEMA."""
    row = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
    return st.lists(row, max_size=most).map(lambda rows: pa.Table.from_pylist(rows, schema=SCHEMA))
