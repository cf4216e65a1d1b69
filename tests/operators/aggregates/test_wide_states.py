"""The order of rows in lists, where few or many have equal times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skypane.operators.aggregates.wide_states import _ordered
from skypane.preference.content_order import content_keys
from skypane.preference.dense_ranks import column_ranks
from skypane.types import IntArray

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, 1.0, float("nan"), None]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0.0, -0.0, None]),
        st.integers(0, 2),
    ),
    max_size=20,
)


@given(st.integers(0, 2**32 - 1), st.sampled_from([511, 512, 3_000]), st.sampled_from([1, 40, 100_000]))
def test_many_rows_too(seed, n, different):
    """Up to and beyond the number from which a radix sort takes over, with few or no equal times."""
    rng = np.random.default_rng(seed)
    table = pa.table({"t": rng.integers(-different, different, n), "v": rng.integers(0, 3, n)})
    assert_ordered(table, rng.integers(0, 3, n))


@given(ROWS)
def test_rows_are_in_the_order_of_group_time_and_content(rows):
    times, texts, numbers, groups = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table(
        {"t": pa.array(times, pa.float64()), "s": pa.array(texts, pa.string()), "n": pa.array(numbers, pa.float64())}
    )
    assert_ordered(table, np.array(groups, np.int64))


def assert_ordered(table: pa.Table, owners: IntArray) -> None:
    """Rows are in the order of group, of time, which is column t, and of content."""
    ranks = column_ranks(table.column("t"))
    defined = np.lexsort((*content_keys(table)[::-1], ranks, owners))
    assert _ordered(table, ranks, owners).tolist() == defined.tolist()
