from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.monitoring import SamplingPeriod, joined, utilisation
from skypane.types import ConfigError


def test_a_case_by_hand():
    """T = 1 s. C = (0.8 + 0.4) / 120 = 10 ms; mu = 80 + 20, 40 + 60; rho = (90^2 + 30^2) / (120 * 100) = 0.75."""
    found = utilisation(
        SamplingPeriod(1.0, busy=(0.8, 0.4), processed=(80, 40), scheduled=(90, 30), panes=4, partitions=6)
    )
    assert found is not None
    assert found.cost == pytest.approx(0.01)
    assert found.served == pytest.approx((100, 100))
    assert found.rho == pytest.approx(0.75)


@pytest.mark.parametrize(("period", "rho"), [
    # The case above with 40 of 120 more: 0.75 * 160 / 120.
    pytest.param(
        SamplingPeriod(1.0, (0.8, 0.4), (80, 40), (90, 30), pending=40), pytest.approx(1.0), id="waiting tasks count"
    ),
    # Worker 1 did nothing, so it could have served T / C = 100; 50 of 150 tuples went there.
    pytest.param(
        SamplingPeriod(1.0, (1.0, 0.0), (100, 0), (100, 50)),
        pytest.approx(100 / 150 * 1.0 + 50 / 150 * 0.5),
        id="a worker that vanished counts by what it was sent",
    ),
    # Two seconds of work for the rows that came in one: a utilisation of two.
    pytest.param(SamplingPeriod(1.0, (2.0,), (200,), (200,)), pytest.approx(2.0), id="longer than the interval"),
    pytest.param(SamplingPeriod(1.0, (0.0, 0.0), (0, 0), (0, 0)), 0, id="no tuples"),
    pytest.param(SamplingPeriod(1.0, (0.0,), (7,), (7,)), 0, id="a cost too small to measure gives no load"),
])  # fmt: skip
def test_the_utilisation_by_hand(period: SamplingPeriod, rho: float):
    found = utilisation(period)
    assert found is not None
    assert found.rho == rho


def test_the_splitting_factor_is_partitions_per_closed_pane():
    assert SamplingPeriod(1.0, (0.1,), (1,), (1,), panes=4, partitions=6).sigma == 1.5
    assert SamplingPeriod(1.0, (0.1,), (1,), (1,)).sigma is None


def test_idle_is_the_share_of_time_without_work():
    assert SamplingPeriod(2.0, (2.0, 1.0), (1, 1), (1, 1)).idle == pytest.approx(0.25)
    assert SamplingPeriod(2.0, (3.0, 0.0), (1, 1), (1, 1)).idle == pytest.approx(0.5), (
        "busy for longer than T is not idle less"
    )


def test_the_workers_that_are_needed_are_those_that_the_work_would_keep_busy():
    """Three seconds of work in intervals of one, each worker busy for nine tenths: 3.3 workers, however many shared it."""
    assert SamplingPeriod(1.0, (0.3,) * 10, (1,) * 10, (1,) * 10).needed() == 4
    assert SamplingPeriod(1.0, (3.0, 0.0), (1, 0), (1, 0)).needed() == 4
    assert SamplingPeriod(1.0, (0.0, 0.0), (0, 0), (0, 0)).needed() == 1


def test_tuples_processed_without_any_sent_give_the_cost_of_a_tuple():
    found = utilisation(SamplingPeriod(1.0, (0.5,), (100,), (0,)))
    assert found is not None
    assert (found.cost, found.rho) == (0.005, 0.0)


def test_no_tuples_processed_give_no_cost_of_a_tuple():
    assert utilisation(SamplingPeriod(1.0, (0.0, 0.0), (0, 0), (5, 0))) is None


@pytest.mark.parametrize(("change", "message"), [
    ({"seconds": 0.0}, "need seconds > 0, got 0.0"),
    ({"seconds": -0.1}, "need seconds > 0"),  # a clock that ran backwards
    ({"seconds": math.nan}, "need seconds > 0"),
    ({"busy": (0.1,)}, "1 busy times, 2 processed, 2 scheduled"),
    ({"busy": (math.nan, 0.1)}, "busy of worker 0 must be finite and not negative, got nan"),
    ({"processed": (1, -1)}, "processed of worker 1 must be finite and not negative, got -1"),
    ({"scheduled": (1, math.inf)}, "scheduled of worker 1 must be finite"),
    ({"busy": (), "processed": (), "scheduled": ()}, "at least one"),
])  # fmt: skip
def test_invalid_figures_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        SamplingPeriod(**{"seconds": 1.0, "busy": (0.1, 0.1), "processed": (1, 1), "scheduled": (1, 1)} | change)


counts = st.integers(0, 1_000)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1_000), counts), min_size=1, max_size=8))
def test_rho_is_least_when_tuples_are_spread_as_evenly_as_workers_serve(workers):
    """Cauchy-Schwarz (paper 5, Proposition 1): rho is at least lambda_tot / sum mu."""
    busy, processed, scheduled = zip(*workers, strict=True)
    found = utilisation(SamplingPeriod(1.0, busy, processed, scheduled))
    assert found is not None
    if found.served and all(math.isfinite(mu) for mu in found.served):
        assert found.rho >= sum(scheduled) / sum(found.served) - 1e-9


@given(st.lists(st.tuples(st.floats(0.01, 1), counts, counts), min_size=1, max_size=5), st.floats(0.5, 4))
def test_a_faster_clock_changes_nothing(workers, factor):
    busy, processed, scheduled = zip(*workers, strict=True)
    before = utilisation(SamplingPeriod(1.0, busy, processed, scheduled))
    after = utilisation(SamplingPeriod(factor, tuple(factor * phi for phi in busy), processed, scheduled))
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after.rho == pytest.approx(before.rho)


def test_periods_join_though_workers_come_and_go():
    first = SamplingPeriod(1.0, (0.5, 0.5), (10, 10), (10, 12), panes=1, partitions=2, pending=9)
    second = SamplingPeriod(0.5, (0.1, 0.1, 0.2), (5, 5, 5), (5, 5, 5), panes=2, partitions=6, pending=4)
    assert joined((first, second)) == SamplingPeriod(
        1.5, (0.6, 0.6, 0.2), (15, 15, 5), (15, 17, 5), panes=3, partitions=8, pending=4
    )
    with pytest.raises(ConfigError, match="at least one period"):
        joined(())
