"""Keys are numbered in the order in which they are first seen, whatever they look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.kernels.key_table import KeyTable

WORD = st.one_of(
    st.integers(-3, 3),
    st.integers(0, 40).map(lambda n: n << 12),  # all of one place in a small table
    st.integers(-(2**63), 2**63 - 1),
)


@given(st.lists(st.lists(st.tuples(WORD, st.integers(0, 1)), max_size=30), max_size=6))
def test_a_key_has_the_number_of_its_first_coming(calls: list[list[tuple[int, int]]]):
    table, numbers = KeyTable(2), dict[tuple[int, int], int]()
    for keys in calls:
        wanted = [numbers.setdefault(key, len(numbers)) for key in keys]
        assert table.of(np.array(keys, np.int64).reshape(-1, 2)).tolist() == wanted
    assert list(map(tuple, table.keys.tolist())) == list(numbers)


@pytest.mark.parametrize("step", [1, 4_096, 2**40])
def test_many_keys_at_any_distance_are_distinguished(step: int):
    keys = np.column_stack([np.arange(20_000) * step, np.zeros(20_000, np.int64)])
    table = KeyTable(2)
    assert (table.of(keys) == np.arange(20_000)).all()
    assert (table.of(keys[::-1]) == np.arange(20_000)[::-1]).all()
