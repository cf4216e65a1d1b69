"""What all arrivals have in common, and what each constant or Poisson one promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.workloads.streams import rate_of, times_of

from skypane.types import ConfigError
from skypane.workloads import ARRIVALS, Constant, Poisson, workload
from skypane.workloads.estimators import autocorrelation, dispersion, gaps, squared_variation

NEEDED: dict[str, dict[str, Any]] = {
    "constant": {"rate": 1_000},
    "poisson": {"rate": 1_000},
    "map2": {"rate": 1_000, "dispersion": 50},
    "self-similar": {"rate": 1_000},
    "pareto-slots": {"rate": 1_000},
    "random-walk": {"rate": 1_000},
    "steps": {"rates": [500, 1_500], "every": "1 second"},
    "on-off": {"rate": 1_000},
    "constw": {"low": 5, "high": 20},
    "psfcw": {"low": 5, "high": 20},
    "ptfcw": {"low": 5, "high": 20},
    "sfvar": {"low": 5, "high": 20},
    "tfvar": {"low": 5, "high": 20},
    "bursty": {"rate": 20},
}


def test_every_name_is_tested_here():
    assert set(NEEDED) == set(ARRIVALS)


@pytest.mark.parametrize("name", NEEDED)
def test_arrivals_ascend_from_the_start_and_come_again(name: str):
    made = workload(name, **NEEDED[name], d=1, rows=40_000)
    table = made.table()
    times = table["time"].cast("int64").to_numpy() - made.start
    assert len(times) == 40_000
    assert times[0] >= 0
    assert (np.diff(times) >= 0).all()
    assert table.equals(made.table())
    assert not table.equals(workload(name, **NEEDED[name], d=1, rows=40_000, seed=1).table())


@pytest.mark.parametrize("name", NEEDED)
def test_a_fleet_s_sources_are_numbered(name: str):
    sources = workload(name, **NEEDED[name], d=1, rows=40_000).table()["source"].to_numpy()
    named = set(np.unique(sources).tolist())
    assert named == (set(range(80)) if "low" in NEEDED[name] or name == "bursty" else {0})


def test_constant_arrivals_are_evenly_spaced():
    times = times_of(Constant(8_000), 100_000)
    assert set(np.diff(times).tolist()) == {125}


def test_constant_arrivals_keep_their_rate_where_a_gap_is_not_a_whole_number():
    assert times_of(Constant(3), 300_001)[-1] == 100_000_000_000


def test_poisson_arrivals_have_dispersion_one_and_independent_gaps():
    times = times_of(Poisson(1_000), 500_000)
    assert rate_of(times) == pytest.approx(1_000, rel=0.01)
    assert dispersion(times).value == pytest.approx(1, rel=0.1)
    assert squared_variation(gaps(times)) == pytest.approx(1, rel=0.02)
    assert np.abs(autocorrelation(gaps(times), 5)).max() < 0.01


@pytest.mark.parametrize("config", [Constant, Poisson])
@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(config: type[Constant], rate: float):
    with pytest.raises(ConfigError, match="need 0 < rate < infinity"):
        config(rate)
