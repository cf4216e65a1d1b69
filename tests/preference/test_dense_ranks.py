from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.preference.dense_ranks import column_ranks, row_ranks


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.0, -0.0, 0.0])), max_size=10))
def test_row_ranks_are_dense_and_in_order(rows: list[tuple[int, float]]):
    keys = [np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.float64)]
    values = sorted(set(rows))
    assert row_ranks(keys).tolist() == [values.index(r) for r in rows]


@given(st.lists(st.text(max_size=2) | st.none(), max_size=10), st.integers(0, 10))
def test_column_ranks_order_texts_by_code_point_and_nulls_last(texts: list[str | None], cut: int):
    # UTF-8 sorts as code points do
    column = pa.chunked_array([texts[:cut], texts[cut:]], pa.string())
    values = sorted({t for t in texts if t is not None})
    wanted = [len(values) if t is None else values.index(t) for t in texts]
    assert (column_ranks(column) - 1).tolist() == wanted


@pytest.mark.filterwarnings("error")
def test_nan_comes_before_null():
    assert column_ranks(pa.chunked_array([[None, float("nan"), float("inf"), -0.0, 0.0]])).tolist() == [4, 3, 2, 1, 1]
