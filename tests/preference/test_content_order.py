from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from tests.preference.strategies import tables

from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import row_ranks


@given(tables())
def test_keys_are_equal_exactly_where_rows_show_no_difference(table: pa.Table):
    ranks = row_ranks(content_keys(table))
    shown = [repr(row) for row in table.to_pylist()]
    for i, t in enumerate(shown):
        for j, u in enumerate(shown):
            assert (ranks[i] == ranks[j]) == (t == u)


@given(tables())
def test_the_order_does_not_depend_on_positions(table: pa.Table):
    backwards = table.take(np.arange(table.num_rows)[::-1])
    order, other = (np.lexsort(content_keys(t)[::-1]) for t in (table, backwards))
    assert list(map(repr, table.take(order).to_pylist())) == list(map(repr, backwards.take(other).to_pylist()))


def test_columns_count_from_the_left_ascending_nulls_last():
    table = pa.table({"a": [2, 1, 1, None, 1], "b": [0.0, None, -0.0, 0.0, 0.0]})
    assert np.lexsort(content_keys(table)[::-1]).tolist() == [2, 4, 1, 0, 3]
    assert np.lexsort(content_keys(table, ["b"])[::-1]).tolist() == [2, 0, 3, 4, 1]


def test_nested_columns_have_an_order_too():
    table = pa.table({"a": [[2], [1, 2], None, [1]], "b": [{"x": 1}, None, {"x": 2}, {"x": 1}]})
    assert sorted(row_ranks(content_keys(table)).tolist()) == [0, 1, 2, 3]
