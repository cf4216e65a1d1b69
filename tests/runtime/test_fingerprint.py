from __future__ import annotations

from functools import reduce

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skypane.runtime.spark.engine.fingerprint import Fingerprint

TIMES = st.lists(st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=20)


def of(times: list[int | None]) -> Fingerprint:
    return Fingerprint.of(pa.array(times, pa.timestamp("us", "UTC")))


@given(TIMES, st.data())
def test_order_and_partitions_leave_it_as_it_is(times: list[int | None], data: st.DataObject):
    shuffled = data.draw(st.permutations(times))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(times)), max_size=3)))
    parts = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(times)], strict=True)]
    assert reduce(Fingerprint.__add__, map(of, parts), Fingerprint()) == of(times)


@given(TIMES, TIMES)
@example([None], [0])
def test_other_rows_have_another(one: list[int | None], other: list[int | None]):
    same = sorted(map(str, one)) == sorted(map(str, other))
    assert (of(one) == of(other)) == same


@given(st.lists(st.integers(0, 1_000_000), min_size=2, max_size=5), st.integers(1, 1_000))
def test_times_that_have_moved_against_each_other_are_other_times(times: list[int], by: int):
    moved = [times[0] + by, times[1] - by, *times[2:]]
    assert (of([*times]) == of([*moved])) == (sorted(times) == sorted(moved))
