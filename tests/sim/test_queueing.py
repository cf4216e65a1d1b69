"""Waiting times against queueing theory, within 2 %."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.queueing import waiting_times

from skypane.control.splitting import PaneRoundRobin
from skypane.runtime.sim.pane_farm import PaneFarm
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import FloatArray

TUPLES = 1_000_000
SEEDS = range(4)


def exponential(mean: float, seed: int) -> FloatArray:
    """Return draws of exactly this mean: what is left of chance is their order."""
    draws = np.random.default_rng(seed).standard_exponential(TUPLES)
    return np.asarray(draws * (mean / draws.mean()))


def erlang_c(servers: int, load: float) -> float:
    """Return the probability to wait in an M/M/c queue, of a load in servers' worth."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.long
@pytest.mark.parametrize(("servers", "rho"), [(1, 0.5), (1, 0.7), (4, 0.8), (17, 0.7)])
def test_exponential_services_wait_as_in_erlangs_formula(servers: int, rho: float):
    """M/M/c: C(c, a) / (c mu - lambda)."""
    waits = [
        waiting_times(np.cumsum(exponential(1 / (servers * rho), seed)), exponential(1.0, 100 + seed), servers).mean()
        for seed in SEEDS
    ]
    assert np.mean(waits) == pytest.approx(erlang_c(servers, servers * rho) / (servers * (1 - rho)), rel=0.02)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_constant_services_wait_half_as_long(rho: float):
    """M/D/1: rho / (2 mu (1 - rho)), by Pollaczek and Khinchine."""
    waits = [waiting_times(np.cumsum(exponential(1 / rho, seed)), np.ones(TUPLES), 1).mean() for seed in SEEDS]
    assert np.mean(waits) == pytest.approx(rho / (2 * (1 - rho)), rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize(("rho", "services"), [(0.6, "exponential"), (0.8, "constant")])
def test_the_pane_farm_holds_as_many_tuples_as_in_littles_law(rho: float, services: str):
    """One worker: busy for rho of the time, and as many tuples in the farm, time-averaged, as Little's law gives."""
    arrival = np.cumsum(exponential(1 / rho, 4))
    work = exponential(1.0, 5) if services == "exponential" else np.ones(TUPLES)
    stream = SimulatedStream(arrival, np.zeros(TUPLES, np.int64), work, np.array([TUPLES]))
    farm = PaneFarm(stream, np.ones(1), workers=1)
    policy, seen, busy = PaneRoundRobin(), [], 0.0
    end = float(arrival[-1])
    for until in np.arange(150.0, end, 150.0):
        busy += sum(farm.advance(float(until), policy).period.busy)
        seen.append(farm.backlog)
    expected = rho / (1 - rho) if services == "exponential" else rho + rho**2 / (2 * (1 - rho))
    assert busy / until == pytest.approx(rho, rel=0.01)
    assert np.mean(seen) == pytest.approx(expected, rel=0.05), "sampled every 150 services"


@given(gaps=st.lists(st.integers(0, 5), min_size=1, max_size=30), data=st.data(), servers=st.integers(1, 4))
def test_each_tuple_takes_the_server_that_is_free_first(gaps, data, servers):
    service = data.draw(st.lists(st.integers(0, 9), min_size=len(gaps), max_size=len(gaps)))
    arrival = np.cumsum(gaps).astype(float)
    free = [0.0] * servers
    expected = []
    for time, length in zip(arrival, service, strict=True):
        start = max(time, heapq.heappop(free))
        expected.append(start - time)
        heapq.heappush(free, start + length)
    assert waiting_times(arrival, np.array(service, float), servers).tolist() == expected
