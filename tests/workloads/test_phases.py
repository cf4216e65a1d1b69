from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.workloads.arrivals.phases import ExponentialPeriods, ParetoPeriods, Phases, pieces
from skypane.workloads.stream import generator


@pytest.mark.parametrize("periods", [ExponentialPeriods(2.0), ParetoPeriods(2.0, 2.5)])
def test_periods_have_their_mean(periods: ExponentialPeriods | ParetoPeriods):
    assert periods.lengths((400, 500), generator(1, 0)).mean() == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("periods", [ExponentialPeriods(2.0), ParetoPeriods(2.0, 4.5)])
def test_remainders_are_those_of_periods_met_at_random(periods: ExponentialPeriods | ParetoPeriods):
    rng = generator(2, 0)
    lengths = periods.lengths((200_000,), rng)
    met = np.sort(rng.random(50_000) * lengths.sum())
    ends = np.cumsum(lengths)
    remainders = ends[np.searchsorted(ends, met)] - met
    drawn = periods.remainders(50_000, rng)
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(drawn, share) == pytest.approx(np.quantile(remainders, share), rel=0.05)


@given(seed=st.integers(0, 1_000), n=st.integers(1, 5), steps=st.lists(st.floats(0, 30), min_size=1, max_size=8))
def test_the_state_agrees_with_counting_edges(seed: int, n: int, steps: list[float]):
    phases = Phases(ExponentialPeriods(1.0), ParetoPeriods(0.5, 1.4), n, generator(seed, 0))
    start = 0.0
    for step in steps:
        seconds = np.linspace(start, start + step, 20)
        sources = np.arange(20) % n
        first = phases.first.copy()
        on, until = phases.state(seconds, sources)
        edges = phases.edges
        for second, source, is_on, end in zip(seconds, sources, on, until, strict=True):
            passed = int((edges[source] <= second).sum())
            assert is_on == first[source] ^ (passed % 2 == 1)
            assert end == edges[source][passed] > second
        start += step


def test_forgetting_changes_nothing_ahead_and_keeps_memory_bounded():
    phases = Phases(ExponentialPeriods(1.0), ExponentialPeriods(1.0), 3, generator(4, 0))
    widths = []
    for start in range(0, 3_000, 10):
        seconds = np.linspace(start, start + 10, 50)
        before = phases.state(seconds, np.arange(50) % 3)
        phases.forget(float(start))
        after = phases.state(seconds, np.arange(50) % 3)
        assert (before[0] == after[0]).all()
        assert (before[1] == after[1]).all()
        widths.append(phases.edges.shape[1])
    assert max(widths) <= 64


def test_the_share_of_time_on_is_that_of_the_means():
    phases = Phases(ExponentialPeriods(1.0), ExponentialPeriods(3.0), 200, generator(5, 0))
    seconds = np.sort(generator(6, 0).random(200_000) * 200)
    on, _ = phases.state(seconds, np.arange(200_000) % 200)
    assert on.mean() == pytest.approx(0.25, abs=0.01)
    assert on[seconds < 1].mean() == pytest.approx(0.25, abs=0.08)  # from the start on


def test_pieces_are_the_state_between_edges():
    phases = Phases(ExponentialPeriods(1.0), ExponentialPeriods(1.0), 4, generator(7, 0))
    rates = np.array([1.0, 2.0, 4.0, 8.0])
    part = next(pieces(phases, rates, 50.0))
    middles = np.cumsum(part.lengths) - part.lengths / 2
    for source, rate in enumerate(rates):
        on, _ = phases.state(np.insert(middles, 0, 0.0), np.full(len(middles) + 1, source))
        assert (part.rates[:, source] == rate * on[1:]).all()


def test_blocks_of_pieces_join():
    phases = Phases(ExponentialPeriods(1.0), ParetoPeriods(1.0, 1.5), 4, generator(8, 0))
    parts = list(islice(pieces(phases, np.ones(4), 5.0), 200))
    assert sum(part.lengths.sum() for part in parts) == pytest.approx(1_000.0)
    for before, after in pairwise(parts):
        assert (before.rates[-1] == after.rates[0]).all()
        assert (np.abs(np.diff(before.rates, axis=0)).sum(axis=1) == 1).all()
