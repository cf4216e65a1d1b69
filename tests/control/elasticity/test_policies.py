from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.elasticity.forecasting_policy import ModelPolicy
from skypane.control.elasticity.fuzzy import PROMPT
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.situation import Situation, fitted
from skypane.control.elasticity.threshold import ThresholdPolicy
from skypane.control.forecast import RateAhead
from skypane.control.parallelism import Workers
from skypane.types import ConfigError

SITUATION = Situation(Workers(4, 7), rho_plq=1.22, rho_wlq=0.9, sigma=1.0)


def test_a_decision_of_the_fuzzy_policy_reads_as_one_line():
    proposal = FuzzyPolicy().propose(SITUATION, 60)
    assert proposal.value == Workers(6, 8)
    for part in ("slow 0.80", "rho 1.22", "sigma 1.00", "rule 11 0.80", "rule 5 0.20", "PLQ 4 -> 6", "WLQ 7 -> 8"):
        assert part in proposal.because
    assert "\n" not in proposal.because
    assert proposal.figures["rule 11"] == pytest.approx(0.8)
    assert proposal.figures["factor plq"] == pytest.approx(1.4)


def test_figures_that_were_not_measured_are_reported_as_such():
    proposal = FuzzyPolicy().propose(replace(SITUATION, rho_plq=math.nan), 60)
    assert proposal.value == SITUATION.workers
    assert "not measured" in proposal.because
    assert "PLQ nan" in proposal.because


def test_a_setpoint_is_reported_where_it_adds_workers():
    slow = replace(SITUATION, rho_plq=3.6)
    assert "rule 11 1.00, by the setpoint 0.90 -> PLQ 4 -> 16" in FuzzyPolicy(PROMPT).propose(slow, 60).because
    assert "setpoint" not in FuzzyPolicy(PROMPT).propose(SITUATION, 60).because


@pytest.mark.parametrize(("rate", "workers"), [
    # 10,000 tuples/s of 400 us are 4 worker-seconds a second, of which 0.8 may be used: 5 workers.
    # Close to saturation they give 5 / 400 us = 12,500 tuples/s; of 200 us that is 2.5 / 0.8 = 3.125: 4 workers.
    (10_000.0, Workers(5, 4)),
    # The window level gets what comes: 9,000 tuples/s take 5 workers of the pane level, who could do 12,500.
    # By equation 1b 9,000 / 0.8 = 11,250 come to the WLQ: of 200 us these are 2.25 / 0.8 = 2.8 workers, so 3, not 4.
    (9_000.0, Workers(5, 3)),
])  # fmt: skip
def test_equations_1a_and_1b_by_hand(rate: float, workers: Workers):
    situation = replace(SITUATION, rate=rate, cost_plq=400e-6, cost_wlq=200e-6)
    assert ModelPolicy(headroom=0.2).propose(situation, 60).value == workers


def test_a_backlog_is_worked_off_within_the_latency_bound():
    """2,000 tuples in 2 s are 1,000 tuples/s more."""
    situation = replace(SITUATION, rate=1_000.0, cost_plq=1e-3, backlog=2_000)
    assert ModelPolicy(headroom=0.0, latency="2 s").propose(situation, 60).value.plq == 2
    assert ModelPolicy(headroom=0.0, latency="1 s").propose(situation, 60).value.plq == 3


def test_a_rate_that_is_stated_counts_as_if_it_were_there_if_it_is_higher():
    """400 tuples/s of 20 ms are the work of 8 workers, of which a tenth stays free: 9, where 40 of them take one."""
    situation = replace(SITUATION, rate=40.0, cost_plq=20e-3, ahead=RateAhead(400.0, "x10 at 09:30 UTC, in 60 s"))
    proposal = ModelPolicy().propose(situation, 60)
    assert proposal.value.plq == 9
    assert proposal.because.startswith("400 tuples/s (x10 at 09:30 UTC, in 60 s) x 20000.0 us / 0.90 -> PLQ 4 -> 9")
    assert ModelPolicy().propose(replace(situation, rate=None), 60).value.plq == 9, "no forecast of its own yet"
    less = ModelPolicy().propose(replace(situation, ahead=RateAhead(39.0, "x1 at 16:00 UTC")), 60)
    assert less == ModelPolicy().propose(replace(situation, ahead=None), 60)
    assert [policy.looks_ahead for policy in (ModelPolicy(), FuzzyPolicy(), ThresholdPolicy())] == [True, False, False]


def test_without_a_forecast_or_a_cost_the_model_waits():
    assert ModelPolicy().propose(SITUATION, 60).value == SITUATION.workers


def test_the_threshold_keeps_utilisation_at_its_target():
    """4 x 1.22 / 0.8 = 6.1; 7 x 0.84 / 0.8 is within the tolerance."""
    assert ThresholdPolicy().propose(replace(SITUATION, rho_wlq=0.84), 60).value == Workers(7, 7)
    unknown = replace(SITUATION, rho_plq=math.nan, rho_wlq=math.inf)
    assert ThresholdPolicy().propose(unknown, 60).value == Workers(4, 7)


def test_the_threshold_takes_workers_away_below_its_target():
    """7 x 0.4 / 0.8 = 3.5; without any work one stays."""
    assert ThresholdPolicy().propose(replace(SITUATION, rho_plq=0.0, rho_wlq=0.4), 60).value == Workers(1, 4)


@given(st.integers(-3, 200), st.integers(-3, 200), st.integers(2, 100))
def test_both_stages_fit_in_the_workers_available(plq, wlq, most):
    workers = fitted(plq, wlq, most)
    assert workers.total <= most
    if max(1, plq) + max(1, wlq) <= most:
        assert workers == Workers(max(1, plq), max(1, wlq))


@pytest.mark.parametrize("policy", [FuzzyPolicy(), ModelPolicy(), ThresholdPolicy()], ids=lambda policy: policy.name)
@given(
    rhos=st.tuples(*[st.one_of(st.floats(0, 10), st.just(math.nan))] * 2),
    sigma=st.one_of(st.floats(1, 60), st.just(math.nan)),
    workers=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    rate=st.one_of(st.none(), st.floats(0, 1e6)),
    cost=st.one_of(st.none(), st.floats(0, 1e-2)),
)
def test_every_policy_keeps_within_the_limit(policy, rhos, sigma, workers, rate, cost):
    situation = Situation(Workers(*workers), rhos[0], rhos[1], sigma, rate, 10, cost, cost)
    proposal = policy.propose(situation, 40)
    if sum(workers) <= 40:
        assert proposal.value.total <= 40
    assert "\n" not in proposal.because


@pytest.mark.parametrize(("make", "message"), [
    (lambda: ModelPolicy(headroom=1.0), "0 <= headroom < 1"),
    (lambda: ModelPolicy(latency="0 s"), "latency must be longer than 0"),
    (lambda: ThresholdPolicy(target=0), "0 < target <= 1"),
    (lambda: Workers(0, 1), "plq_workers must be a whole number of at least 1, got 0"),
    (lambda: Workers(1, wlq=True), "wlq_workers must be a whole number of at least 1, got True"),
])  # fmt: skip
def test_invalid_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
