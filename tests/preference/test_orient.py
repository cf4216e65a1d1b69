from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.preference.oracle import Leaf
from tests.preference.strategies import VALUES, leaves, tables

from skypane.preference import around, high, low


@given(tables(), st.data())
def test_points_keep_order_and_equality_exactly(table: pa.Table, data: st.DataObject):
    leaf: Leaf = data.draw(st.sampled_from(sorted(VALUES)).flatmap(leaves))
    points = leaf.build().orient(table)[:, 0]
    rows = table.to_pylist()
    for i, t in enumerate(rows):
        for j, u in enumerate(rows):
            assert (points[i] < points[j]) == leaf.better(t, u)
            assert (points[i] == points[j]) == leaf.equal(t, u)


def test_shape_and_layout():
    table = pa.table({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]})
    points = (low("a") * high("b")).orient(table)
    assert points.shape == (3, 2)
    assert points.dtype == np.float64
    assert points.flags.f_contiguous
    assert points.tolist() == [[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]]


def test_infinities_are_at_the_ends():
    table = pa.table({"a": [float("inf"), -float("inf"), 0.0]})
    assert low("a").orient(table)[:, 0].tolist() == [float("inf"), -float("inf"), 0.0]
    assert around("a", 1).orient(table)[:, 0].tolist() == [float("inf"), float("inf"), 1.0]


def test_slices_and_chunks_of_columns_that_had_nulls():
    column = pa.array([None, 1.0, 2.0, None, 3.0])
    chunked = pa.chunked_array([column.slice(1, 2), column.slice(4, 1), column.slice(0, 0)])
    assert low("a").orient(pa.table({"a": chunked}))[:, 0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float16(), [np.float16(1.5), np.float16(-2), np.float16(1.5)]),
        (pa.decimal32(5, 1), ["1.5", "-2", "1.5"]),
        (pa.decimal64(15, 1), ["1.5", "-2", "1.5"]),
        (pa.decimal256(50, 1), ["1.5", "-2", "1.5"]),
        (pa.string_view(), ["b", "a", "b"]),
        (pa.large_string(), ["b", "a", "b"]),
        (pa.binary(), [b"b", b"a", b"b"]),
        (pa.binary_view(), [b"b", b"a", b"b"]),
        (pa.binary(1), [b"b", b"a", b"b"]),
        (pa.date64(), [2 * 86_400_000, 86_400_000, 2 * 86_400_000]),
        (pa.time32("s"), [2, 1, 2]),
        (pa.time64("ns"), [2, 1, 2]),
        (pa.timestamp("ns"), [2**60 + 1, 2**60, 2**60 + 1]),
    ],
)
def test_other_types_have_their_order(kind: pa.DataType, values: list[Any]):
    array = pa.array(values).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)
    points = low("a").orient(pa.table({"a": array}))[:, 0]
    assert points[0] == points[2] > points[1]


def test_integers_beyond_float64_are_distinguished():
    big = 2**53
    table = pa.table({"a": [big, big + 1, big + 2, -big - 1, -(2**63)]})
    assert high("a").orient(table)[:, 0].argsort().tolist() == [2, 1, 0, 3, 4]


def test_times_are_distinguished_by_their_smallest_unit():
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    nanos = int(noon.timestamp()) * 10**9
    table = pa.table({"t": pa.array([nanos - 10**18, nanos + 2, nanos - 1, nanos], pa.timestamp("ns", tz="UTC"))})
    assert around("t", noon).orient(table)[:, 0].argsort().tolist() == [3, 2, 1, 0]


def test_inputs_stay_as_they_were():
    values = np.array([3.0, 1.0])
    points = high("a").orient(pa.table({"a": values}))
    points[:] = 0.0
    assert values.tolist() == [3.0, 1.0]
