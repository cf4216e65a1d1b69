"""Sketches against exact answers: the stated error holds, and the laws of a query too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.testing import check_query
from skypane.types import ConfigError

NUMBERS = st.floats(width=64, allow_nan=False, min_value=-1e300, max_value=1e300)


def answer(rows: pa.Table, **functions: Any) -> list[dict[str, Any]]:
    query = sp.Aggregate("key" if "key" in rows.column_names else (), **functions)
    found: list[dict[str, Any]] = query.lower(query.combine([query.lift(rows)])).to_pylist()
    return found


@given(st.lists(NUMBERS, min_size=1, max_size=50), st.floats(0, 1), st.sampled_from([0.001, 0.01, 0.2]))
def test_a_quantile_is_off_by_at_most_its_error(numbers: list[float], quantile: float, error: float):
    true = sorted(numbers)[math.floor(quantile * (len(numbers) - 1))]
    ((found),) = answer(pa.table({"x": numbers}), q=sp.approx_quantile("x", quantile, error=error))
    tiny = 5e-324 if abs(true) < 1e-307 else 0.0
    assert abs(found["q"] - true) <= error * abs(true) * (1 + 1e-9) + tiny


def test_several_quantiles_are_a_list_and_unusual_numbers_have_their_places():
    rows = pa.table({"key": ["a"] * 5 + ["b", "c"], "x": [-math.inf, -2.0, 0.0, 2.0, math.nan, None, math.inf]})
    found = {row["key"]: row["q"] for row in answer(rows, q=sp.approx_quantile("x", [0.0, 0.25, 0.5, 0.75, 1.0]))}
    assert found["a"] == pytest.approx([-math.inf, -2.0, 0.0, 2.0, math.nan], rel=0.01, nan_ok=True)
    assert found["b"] is None
    assert found["c"] == [math.inf] * 5


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_the_number_of_different_values_is_off_by_its_standard_error(kind: pa.DataType):
    keys, values, error = 60, 3_000, 0.05
    ids = np.arange(keys * values)
    rows = pa.table({"key": ids // values, "x": pa.array(ids).cast(kind)})
    twice = pa.concat_tables([rows, rows])
    counts = np.array([row["n"] for row in answer(twice, n=sp.approx_count_distinct("x", error=error))])
    errors = counts / values - 1
    assert len(counts) == keys
    assert 0.5 * error < np.sqrt(np.mean(errors**2)) < 1.5 * error
    assert abs(np.mean(errors)) < 4 * error / math.sqrt(keys)


def test_few_different_values_are_counted_exactly():
    rows = pa.table({"x": [0.0, -0.0, math.nan, math.nan, 1.5, None] * 3})
    assert answer(rows, n=sp.approx_count_distinct("x")) == [{"n": 3}]


def test_a_quantile_is_the_median_within_a_hundredth_by_default():
    assert sp.approx_quantile("x") == sp.approx_quantile("x", 0.5, error=0.01)


def test_the_same_values_in_many_panes_need_no_more_room_than_in_one():
    pane = pa.table({"key": ["a"] * 200, "x": np.geomspace(1, 1e6, 200)})
    query = sp.Aggregate("key", n=sp.approx_count_distinct("x"), q=sp.approx_quantile("x"))
    one = query.combine([query.lift(pane)])
    many = query.combine([query.lift(pane) for _ in range(50)])
    assert many.nbytes == one.nbytes


def test_sketches_keep_the_laws():
    rng = np.random.default_rng(1)
    rows = pa.table({"key": rng.choice(["a", "b"], 60), "x": rng.normal(size=60), "s": rng.choice(["u", "v", "w"], 60)})
    query = sp.Aggregate(
        "key",
        n=sp.approx_count_distinct("x", error=0.3),
        s=sp.approx_count_distinct("s", where="x > 0"),
        q=sp.approx_quantile("x", [0.1, 0.9]),
    )
    check_query(query, rows, tries=3)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda: sp.approx_quantile("x", 1.5), "quantiles must lie between 0 and 1"),
        (lambda: sp.approx_quantile("x", error=0.0), "error must lie between 0.001 and 0.5"),
        (
            lambda: sp.Aggregate(n=sp.approx_quantile("x")).validate(pa.schema([("x", pa.string())])),
            "it holds no numbers",
        ),
        (
            lambda: sp.Aggregate(n=sp.approx_count_distinct("x")).validate(pa.schema([("x", pa.list_(pa.int64()))])),
            "hashed",
        ),
    ],
)
def test_what_a_sketch_cannot_do_is_reported(function, complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        function()
