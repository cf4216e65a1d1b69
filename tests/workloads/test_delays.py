from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skypane.types import FloatArray
from skypane.workloads import (
    Classic,
    EmpiricalDelay,
    ExponentialDelay,
    HeldBack,
    LognormalDelay,
    NoDelay,
    ParetoDelay,
    UniformDelay,
    Workload,
)
from skypane.workloads.arrivals.plain import Constant, Poisson
from skypane.workloads.content.senders import Shared
from skypane.workloads.disorder.delays import Delays
from skypane.workloads.estimators import delay_quantiles, dispersion, late_share, tail_exponent
from skypane.workloads.stream import generator


def delays_of(config: Delays, n: int = 400_000) -> FloatArray:
    """Seconds of delay of tuples that one source sends 1,000 of per second."""
    times = np.arange(n, dtype=np.int64) * 1_000
    start = config.start(1, generator(1, 0))
    found = np.concatenate([start(part, np.zeros_like(part)) for part in np.array_split(times, 7)])
    assert found.dtype == np.int64
    assert found.min() >= 0
    return np.asarray(found / 1e6)


def test_no_delay_is_none():
    assert not delays_of(NoDelay()).any()


def test_uniform_delays_reach_to_twice_their_mean():
    found = delays_of(UniformDelay("200 ms"))
    assert np.quantile(found, [0, 0.25, 0.5, 1]) == pytest.approx([0, 0.1, 0.2, 0.4], abs=0.002)


def test_exponential_delays_have_their_mean():
    found = delays_of(ExponentialDelay("200 ms"))
    assert found.mean() == pytest.approx(0.2, rel=0.01)
    assert np.quantile(found, 0.99) == pytest.approx(0.2 * np.log(100), rel=0.02)


def test_pareto_delays_have_their_mean_and_their_tail():
    found = delays_of(ParetoDelay("200 ms", tail=2.5))
    assert found.mean() == pytest.approx(0.2, rel=0.05)
    assert tail_exponent(found, share=0.001) == pytest.approx(2.5, rel=0.15)


def test_lognormal_delays_have_their_median_and_their_spread():
    found = delays_of(LognormalDelay("100 ms", sigma=1.5))
    assert np.median(found) == pytest.approx(0.1, rel=0.02)
    assert np.log(found[found > 0]).std() == pytest.approx(1.5, rel=0.02)


def test_a_tail_too_heavy_for_a_timestamp_ends():
    assert delays_of(LognormalDelay("1 day", sigma=20)).max() == pytest.approx(100 * 365 * 86_400)


def test_empirical_delays_have_the_quantiles_of_those_measured():
    measured = np.sort(np.rint(np.random.default_rng(1).lognormal(11, 1, 5_000)).astype(np.int64))
    found = delays_of(EmpiricalDelay(tuple(measured.tolist())))
    shares = [0.1, 0.5, 0.9, 0.99]
    assert np.quantile(found, shares) == pytest.approx(np.quantile(measured, shares) / 1e6, rel=0.05)
    assert set(np.rint(found * 1e6).astype(np.int64).tolist()) <= set(measured.tolist())


def test_held_back_tuples_come_at_once_when_the_hold_ends():
    config = HeldBack(every="4 seconds", hold="1 second")
    found = delays_of(config, 4_000_000)
    held = found > 0
    assert config.held_share == pytest.approx(0.2)
    assert held.mean() == pytest.approx(0.2, abs=0.02)
    assert found.mean() == pytest.approx(config.mean, rel=0.15)
    arrivals = np.arange(len(found)) / 1_000 + found
    # All tuples of one hold arrive at one time: as many times as there are holds.
    runs = np.count_nonzero(np.diff(held.astype(int)) == 1)
    assert len(np.unique(np.rint(arrivals[held] * 1e6))) == pytest.approx(runs, abs=1)


def test_holds_of_different_sources_are_their_own_and_usual_delays_come_on_top():
    usual = UniformDelay("10 ms")
    start = HeldBack("1 second", "1 second", usual).start(2, generator(2, 0))
    times = np.arange(40_000, dtype=np.int64) * 1_000
    held = start(times, np.arange(40_000) % 2) > 20_000
    assert np.corrcoef(held[::2], held[1::2])[0, 1] < 0.5
    alike = start(times + 40_000_000, np.zeros(40_000, dtype=np.int64))
    assert len(np.unique(alike)) > 1_000


@pytest.mark.parametrize("rate", [100, 10_000])
@pytest.mark.parametrize("distribution", ["uniform", "exponential"])
def test_the_late_share_is_that_of_theory(distribution: str, rate: int):
    # A tuple with delay y is in time iff each later one, sent a time x < y after it, takes longer than y - x. With Poisson
    # arrivals that has the chance exp(-rate * integral of P(delay < z) for z from 0 to y), to be averaged over y.
    mean, u = 0.2, (np.arange(100_000) + 0.5) / 100_000
    if distribution == "uniform":
        delays: Delays = UniformDelay("200 ms")
        y = 2 * mean * u
        integral = y**2 / (4 * mean)
    else:
        delays = ExponentialDelay("200 ms")
        y = -mean * np.log(1 - u)
        integral = y - mean * u
    table = Workload(Poisson(rate), Classic(d=1), delays=delays, rows=200_000).table()
    times, arrivals = (table[name].cast("int64").to_numpy() for name in ("time", "arrival"))
    assert late_share(times) == pytest.approx(1 - np.exp(-rate * integral).mean(), abs=0.005)
    assert delay_quantiles(times, arrivals, [0.5])[0] == pytest.approx(np.median(y), rel=0.02)


def test_delayed_delivery_makes_even_streams_bursty():
    def arrivals(delays: Delays) -> Any:
        made = Workload(Shared(Constant(5_000), 4), delays=delays, rows=400_000)
        return made.table()["arrival"].cast("int64").to_numpy()

    assert dispersion(arrivals(NoDelay())).value < 0.1
    assert dispersion(arrivals(HeldBack("2 seconds", "500 ms")))[4].max() > 100
