from __future__ import annotations

from typing import Any

import pytest

from skypane.types import ConfigError
from skypane.workloads import (
    DELAYS,
    POINTS,
    Classic,
    ConstantFleet,
    Drifting,
    EmpiricalDelay,
    FluctuatingFleet,
    HeldBack,
    Map2,
    NoDelay,
    Poisson,
    Presence,
    Shared,
    Steps,
    UniformDelay,
    Workload,
    Zipf,
    workload,
)
from skypane.workloads.registry import composed


def test_a_workload_by_name_is_the_one_by_hand():
    made = workload(
        "map2",
        rate=1_000,
        dispersion=2_000,
        points="anticorrelated",
        d=4,
        delay="held-back",
        delay_every="3 seconds",
        delay_usual="uniform",
        delay_usual_mean="200 ms",
        sources=8,
        source_exponent=0.5,
        keys=10,
        keys_exponent=2,
        keys_move_every="1 minute",
        presence_join_within="5 seconds",
        seed=7,
        rows=100,
    )
    assert made == Workload(
        Shared(Map2(1_000, 2_000), 8, 0.5),
        Classic("anticorrelated", 4),
        Zipf(10, 2, "1 minute"),
        HeldBack("3 seconds", usual=UniformDelay("200 ms")),
        Presence("5 seconds"),
        seed=7,
        rows=100,
    )


def test_missing_parameters_have_their_defaults():
    assert workload("poisson", rate=5) == Workload(Poisson(5), Classic(), Zipf(), NoDelay())


def test_texts_are_read_as_the_parameter_s_type():
    made = composed(
        "map2", rate="1e3", dispersion="155", d="2", rows="1000", seed=str(2**60 + 1), start="5", length="1 s"
    )
    assert made == Workload(Map2(1_000, 155), Classic(d=2), seed=2**60 + 1, rows=1_000, start=5, length="1 s")
    assert composed("steps", rates="100,250.5", every="1 s").arrivals == Steps((100, 250.5), "1 s")
    assert composed("poisson", rate=1, delay="empirical", delay_measured=[1, 2]).delays == EmpiricalDelay((1, 2))
    drift = composed("poisson", rate=1, points="drifting", points_kinds="correlated,independent", d=3)
    assert drift.points == Drifting(("correlated", "independent"), d=3)


def test_paper_3_s_names():
    assert composed("constw", low=1, high=2).arrivals == ConstantFleet(1, 2)
    shapes = {"psfcw": ("step", "constant"), "ptfcw": ("trend", "constant"), "sfvar": ("step", "varying")}
    for name, (shape, total) in shapes.items():
        made = composed(name, low=1, high=2, streams=4)
        assert made.arrivals == FluctuatingFleet(1, 2, shape=shape, total=total, streams=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", POINTS)
def test_points_by_name_are_drawn(name: str):
    assert workload("poisson", rate=1_000, points=name, d=3, rows=100).table().num_columns == 7


@pytest.mark.parametrize("name", DELAYS)
def test_delays_by_name_are_drawn(name: str):
    given: dict[str, Any] = {
        "uniform": {"delay_mean": "1 s"},
        "exponential": {"delay_mean": "1 s"},
        "pareto": {"delay_mean": "1 s"},
        "lognormal": {"delay_median": "1 s"},
        "empirical": {"delay_measured": "5,10,15"},
    }.get(name, {})
    assert workload("poisson", rate=1_000, delay=name, d=1, rows=100, **given).table().num_rows == 100


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("map3", {}, "workload: unknown 'map3'; use one of constant, poisson, map2, "),
        ("poisson", {}, "arrivals 'poisson' needs rate; it takes rate"),
        ("map2", {"rate": 1}, "arrivals 'map2' needs dispersion; it takes rate, dispersion, ratio, burst_share"),
        ("poisson", {"rate": 1, "rat": 2}, "arrivals 'poisson' has no parameter 'rat'; it takes rate"),
        ("poisson", {"rate": "fast"}, "arrivals 'poisson': rate must be a number, got 'fast'"),
        ("poisson", {"rate": True}, "arrivals 'poisson': rate must be a number, got True"),
        ("poisson", {"rate": 1, "rows": "1.5"}, "workload: rows must be a whole number, got '1.5'"),
        ("poisson", {"rate": 1, "rows": None, "d": "x"}, "points 'independent': d must be a whole number, got 'x'"),
        ("poisson", {"rate": 1, "points": "clustered"}, "points: unknown 'clustered'; use one of independent,"),
        (
            "poisson",
            {"rate": 1, "points_kind": "x"},
            "points 'independent' has kind='independent', so kind cannot be given",
        ),
        ("poisson", {"rate": 1, "points": "drifting", "points_kinds": "a,b"}, "kinds must be one of independent, "),
        ("poisson", {"rate": 1, "delay": "uniform"}, "delay 'uniform' needs mean; it takes mean"),
        ("poisson", {"rate": 1, "delay_mean": "1 s"}, "delay 'none' has no parameter 'mean'; it takes none"),
        (
            "poisson",
            {"rate": 1, "delay": "empirical", "delay_measured": 5},
            "measured must be a list, such as 1,2,3, got 5",
        ),
        ("poisson", {"rate": 1, "keys_exp": 1}, "keys has no parameter 'exp'"),
        (
            "constw",
            {"low": 1, "high": 2, "sources": 3},
            "have streams of their own; give streams instead of sources",
        ),
        (
            "sfvar",
            {"low": 1, "high": 2, "shape": "trend"},
            "arrivals 'sfvar' has shape='step', so shape cannot be given",
        ),
    ],
)
def test_errors_name_the_parameter(name: str, given: dict[str, Any], complaint: str):
    with pytest.raises(ConfigError, match=complaint.replace("(", r"\(")):
        workload(name, **given)
