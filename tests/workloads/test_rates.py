from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.streams import united

from skypane.workloads.arrivals.rates import RateSegments, evenly, poisson
from skypane.workloads.arrivals.sent import CHUNK
from skypane.workloads.stream import generator


def repeated(lengths: list[float], rates: list[list[float]]) -> Iterator[RateSegments]:
    return cycle([RateSegments(np.array(lengths), np.array(rates))])


def test_poisson_tuples_follow_the_rate_over_time_and_sources():
    # |--- 1 s: source 0 only ---|--- 2 s: nobody ---|--- 1 s: source 1 twice as fast as 0 ---|
    parts = repeated([1.0, 2.0, 1.0], [[3_000.0, 0.0], [0.0, 0.0], [1_000.0, 2_000.0]])
    times, sources = united(islice(poisson(parts, generator(1, 0)), 8))
    second = times // 1_000_000 % 4
    assert not ((second == 1) | (second == 2)).any()
    assert (sources[second == 0] == 0).all()
    assert np.mean(sources[second == 3]) == pytest.approx(2 / 3, abs=0.01)
    assert np.mean(second == 0) == pytest.approx(0.5, abs=0.02)


def test_a_piece_much_longer_than_a_chunk_and_one_much_shorter():
    for length in (1e6, 1e-4):
        times, _ = united(islice(poisson(repeated([length], [[50_000.0]]), generator(2, 0)), 2))
        assert len(times) / times[-1] * 1e6 == pytest.approx(50_000, rel=0.03)


@settings(max_examples=15)
@given(
    lengths=st.lists(st.floats(0.01, 10), min_size=1, max_size=5),
    seed=st.integers(0, 100),
    data=st.data(),
)
def test_evenly_sent_tuples_are_one_unit_apart_for_each_source(lengths: list[float], seed: int, data: st.DataObject):
    row = st.lists(st.sampled_from([0.0, 1.0, 100.0, 2_500.0]), min_size=3, max_size=3)
    rates = np.array([data.draw(row) for _ in lengths])
    rates[0, 0] = 500.0
    parts = cycle([RateSegments(np.array(lengths), rates)])
    times, sources = united(islice(evenly(parts, generator(seed, 0)), 2))
    assert (np.diff(times) >= 0).all()
    turns = 1 + int(times[-1] / 1e6 / sum(lengths))
    knots = np.cumsum([0.0, *(lengths * turns)])
    for source in range(3):
        units = np.cumsum([0.0, *np.tile(np.array(lengths) * rates[:, source], turns)])
        mine = np.interp(times[sources == source] / 1e6, knots, units)
        # A time is rounded by half a microsecond at most, which is 0.00125 units at the fastest rate.
        assert np.abs(np.diff(mine) - 1).max(initial=0) < 0.01


def test_evenly_sent_chunks_hold_about_a_chunk():
    parts = repeated([0.5, 40.0], [[100.0, 7_000.0], [3_000.0, 0.0]])
    for sent in islice(evenly(parts, generator(3, 0)), 10):
        assert abs(len(sent.times) - CHUNK) <= 2
