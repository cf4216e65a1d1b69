from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.preference.strategies import VALUES, tables

from skypane.preference.groups import group_codes


@given(tables(), st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
def test_codes_are_equal_where_all_columns_are(table: pa.Table, by: list[str]):
    codes = group_codes(table, by)
    assert codes is not None
    rows = [tuple(row[c] for c in by) for row in table.to_pylist()]
    for i, t in enumerate(rows):
        for j, u in enumerate(rows):
            assert (codes[i] == codes[j]) == (t == u)


def test_no_columns_no_codes():
    assert group_codes(pa.table({"a": [1]}), []) is None


def test_null_nan_and_zero():
    column = pa.chunked_array([[0.0, None], [-0.0, float("nan"), None, -float("nan")]])
    codes = group_codes(pa.table({"a": column}), ["a"])
    assert codes is not None
    a, b, c, d, e, f = codes
    assert (a, b, d) == (c, e, f)
    assert len({a, b, d}) == 3


def test_dictionaries_are_compared_by_value():
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", "x"]))
    other = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["y", "x"]))
    codes = group_codes(pa.table({"a": pa.chunked_array([one, other])}), ["a"])
    assert codes is not None
    assert codes[0] == codes[1] == codes[3]
    assert len(set(codes.tolist())) == 3


def test_many_wide_columns_do_not_overflow():
    rng = np.random.default_rng(1)
    n = 400  # 400**8 > 2**62
    table = pa.table({f"c{j}": rng.permutation(n) for j in range(8)})
    twice = pa.concat_tables([table, table])
    codes = group_codes(twice, twice.column_names)
    assert codes is not None
    assert len(set(codes.tolist())) == n
    assert codes[:n].tolist() == codes[n:].tolist()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 127, 0, -128, 127]),
        (pa.uint64(), [2**64 - 1, 2**64 - 3, 2**64 - 1]),
        (pa.int64(), [-(2**63), -(2**63) + 2, -(2**63)]),
        (pa.int64(), [-(2**63), 2**63 - 1, 0, -(2**63)]),
        (pa.int64(), [5, None, 5, 6, None]),
    ],
)
def test_whole_numbers_near_each_other_and_far_apart_are_distinguished(kind: pa.DataType, values: list[int | None]):
    codes = group_codes(pa.table({"a": pa.array(values * 40, kind)}), ["a"])
    assert codes is not None
    assert codes.min() >= 0
    pairs = set(zip(codes.tolist(), values * 40, strict=True))
    assert len(pairs) == len(set(values)) == len(set(codes.tolist()))
