"""Numbers in place of values, and sets of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.numbers import Packing, Seen

BATCHES = st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=20)


@given(BATCHES)
def test_what_is_added_comes_back_in_order_once_and_never_again(batches: list[list[int]]):
    seen, known = Seen(), set[int]()
    for batch in batches:
        assert seen.add(np.array(batch, np.int64)).tolist() == sorted({*batch} - known)
        known |= {*batch}
        assert len(seen) == len(known)
    assert seen.sorted().tolist() == sorted(known)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_rows_are_unpacked_as_they_were_packed_and_differ_if_they_differed(columns: int):
    limit = 1 << 45 // (columns - 1)
    some = [np.array([0, 1, (1 << 18) - 1]), *[np.array([0, 1, limit - 1])] * (columns - 1)]
    rows = [axis.ravel() for axis in np.meshgrid(*some)]
    packing = Packing(columns)
    packed = packing.pack(rows)
    assert len(np.unique(packed)) == len(packed) == 3**columns
    assert [column.tolist() for column in packing.columns(packed)] == [row.tolist() for row in rows]
    with pytest.raises(OverflowError, match="values to tell apart"):
        packing.pack([np.array([0])] * (columns - 1) + [np.array([limit])])
