"""Check the laws of an elasticity policy on random situations and control intervals.

def test_my_policy_keeps_the_laws():
    check_elasticity(MyElasticity(max_workers=8))
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Final

import numpy as np

from skypane.control.elasticity.interval import StageSamples
from skypane.control.elasticity.options import Elasticity
from skypane.control.elasticity.situation import Situation
from skypane.control.monitoring import SamplingPeriod
from skypane.control.parallelism import Workers
from skypane.testing.policy_kit import check_policy

_SITUATIONS: Final = 400
"""Situations for which a policy proposes workers."""


def check_elasticity(option: Elasticity, *, parallelism: int = 4, tries: int = 5, seed: int = 0) -> None:
    """Raise AssertionError, which names the law, if an elasticity policy or one of its proposals breaks one.

    The random runs have idle and overloaded stages, whole and split panes, gaps in the measurements, and a backlog.
    """
    rng = np.random.default_rng(seed)
    controller = option.scaling(Workers(2, 2), parallelism)
    if not getattr(controller.policy, "name", None):
        raise AssertionError(f"{option} breaks a law: a policy has a name, by which the ledger identifies it")
    for _ in range(_SITUATIONS):
        max_workers = int(rng.integers(2, 20))
        situation = _situation(rng, max_workers)
        proposal = option.policy.propose(situation, max_workers)
        if deepcopy(option.policy).propose(situation, max_workers) != proposal:
            raise AssertionError(f"{option} breaks a law: equal situations give equal proposals; with {situation}")
        if proposal.value.total > max_workers:
            raise AssertionError(
                f"{option} breaks a law: a proposal has at most the allowed number of workers in all, {max_workers}; with "
                f"{situation}: {proposal}"
            )
    shown = [_stages(rng) for _ in range(40)]
    check_policy(controller, measured=shown, known=[None], tries=tries, seed=seed)


def _situation(rng: np.random.Generator, max_workers: int) -> Situation:
    """Return a random situation at the end of a control interval; values that could not be measured are NaN or None."""
    plq = int(rng.integers(1, max_workers))
    rho = [math.nan if rng.random() < 0.15 else float(rng.gamma(2, 0.5)) for _ in range(2)]
    rate, cost_plq, cost_wlq = (
        None if rng.random() < 0.2 else float(10 ** rng.uniform(low, low + 5)) for low in (0, -7, -7)
    )
    sigma = math.nan if rng.random() < 0.15 else float(1 + rng.gamma(1, 1))
    backlog = int(rng.integers(0, 10**6)) if rng.random() < 0.3 else 0
    workers = Workers(plq, int(rng.integers(1, max_workers - plq + 1)))
    return Situation(workers, rho[0], rho[1], sigma, rate, backlog, cost_plq, cost_wlq)


def _stages(rng: np.random.Generator) -> StageSamples:
    plq, wlq = (None if rng.random() < 0.15 else _period(rng) for _ in range(2))
    arrived = 0 if plq is None else sum(plq.scheduled)
    backlog = int(rng.integers(0, 50_000)) if rng.random() < 0.3 else 0
    tasks = int(rng.integers(1, 9)) if rng.random() < 0.3 else None
    used_plq, used_wlq = (None if stage is None or rng.random() < 0.3 else stage.needed() for stage in (plq, wlq))
    return StageSamples(plq, wlq, arrived, backlog, tasks, used_plq, used_wlq)


def _period(rng: np.random.Generator) -> SamplingPeriod:
    """Return a random period of one to six workers, from nearly idle to three times overloaded."""
    seconds, workers = float(rng.uniform(0.1, 5)), int(rng.integers(1, 7))
    busy = tuple((rng.uniform(0, 1.2, workers) * seconds).tolist())
    processed = tuple(rng.integers(0, 5_000, workers).tolist())
    scheduled = tuple(round(rows * rng.uniform(0.2, 3)) for rows in processed)
    panes = int(rng.integers(0, 20))
    return SamplingPeriod(seconds, busy, processed, scheduled, panes, panes + int(rng.integers(0, 20)) if panes else 0)
