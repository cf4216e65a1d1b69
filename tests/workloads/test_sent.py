from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skypane.workloads.arrivals.sent import SentTuples, at_most, until


def chunks(times: list[int], cuts: list[int]) -> Iterator[SentTuples]:
    """The times in chunks that end at the cuts; each tuple's source is its number."""
    ends = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    for a, b in pairwise(ends):
        yield SentTuples(np.array(times[a:b], dtype=np.int64), np.arange(a, b))


TIMES = st.lists(st.integers(0, 50), max_size=30).map(sorted)
CUTS = st.lists(st.integers(0, 30), max_size=5)


@given(TIMES, CUTS, st.integers(0, 60))
def test_until_keeps_what_is_before(times: list[int], cuts: list[int], end: int):
    kept = [time for sent in until(chunks(times, cuts), end) for time in sent.times.tolist()]
    assert kept == [time for time in times if time < end]


@given(TIMES, CUTS, st.integers(0, 40))
def test_at_most_keeps_the_first(times: list[int], cuts: list[int], rows: int):
    kept = [source for sent in at_most(chunks(times, cuts), rows) for source in sent.sources.tolist()]
    assert kept == list(range(len(times)))[:rows]


def test_at_most_draws_nothing_more_than_it_needs():
    stream = chunks(list(range(10)), [5])
    assert [len(sent.times) for sent in at_most(stream, 5)] == [5]
    assert len(list(stream)) == 1
