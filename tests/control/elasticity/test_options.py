"""What a user may write as elastic=, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import skypane as sp
from skypane.control.elasticity.fuzzy import AS_RUN
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.interval import StageSamples
from skypane.control.monitoring import SamplingPeriod
from skypane.control.parallelism import Workers
from skypane.types import ConfigError


@pytest.mark.parametrize(("option", "name"), [
    (sp.Fuzzy(max_workers=16), "fuzzy"), (sp.Model(max_workers=16, latency="5 s"), "model"),
    (sp.Threshold(max_workers=16, target=0.7), "threshold"),
])  # fmt: skip
def test_an_option_makes_the_policy_of_its_name(option: Any, name: str):
    scaling = option.scaling(Workers(3, 40))
    assert scaling.policy.name == name
    assert scaling.max_workers == 16
    assert scaling.init().workers == Workers(3, 13), "the start is within the bounds"


def test_without_a_bound_both_stages_may_have_the_default_parallelism():
    """On Spark they alternate on the same cores."""
    assert sp.Fuzzy().scaling(Workers(1, 1), parallelism=8).max_workers == 16
    assert sp.Fuzzy(max_wlq=20).scaling(Workers(1, 1), parallelism=8).max_workers == 28


def test_an_option_is_reported_as_it_was_written():
    assert str(sp.Model(max_workers=4, dry_run=True)) == "Model(max_workers=4, dry_run=True)"
    assert str(sp.Fuzzy()) == "Fuzzy()"


def test_the_controllers_own_settings_are_passed_on():
    assert sp.Fuzzy(max_workers=4, controller=AS_RUN).policy == FuzzyPolicy(AS_RUN)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: sp.Fuzzy(max_workers=1), "max_workers must be at least 2, one for each stage, got 1"),
    (lambda: sp.Fuzzy(max_workers=8, min_plq=5, max_plq=4), "need 1 <= min_plq <= max_plq <= 8, got 5 and 4"),
    (lambda: sp.Fuzzy(max_workers=8, min_plq=5, min_wlq=4), r"the least of both stages, 5 \+ 4, exceeds 8"),
    (lambda: sp.Fuzzy(max_workers=2.5), "whole numbers, got 2.5"),  # type: ignore[arg-type]
    (lambda: sp.Fuzzy(max_workers=8, every=0), "need every >= 1"),
    (lambda: sp.Fuzzy(max_workers=8, every=2.5), "whole numbers, got 2.5"),  # type: ignore[arg-type]
    (lambda: sp.Fuzzy(max_workers=8, every="soon"), "every: cannot read 'soon' as a duration"),
    (lambda: sp.Fuzzy(max_workers=8, idle_timeout=1.5), "whole numbers, got 1.5"),  # type: ignore[arg-type]
    (lambda: sp.Fuzzy(max_workers=float("nan")), "whole numbers, got nan"),  # type: ignore[arg-type]
    (lambda: sp.Model(max_workers=8, latency="0 s"), "latency must be longer than 0"),
    (lambda: sp.Model(max_workers=8, headroom=1.0), "headroom is a share of a worker"),
    (lambda: sp.Threshold(max_workers=8, target=0), "need 0 < target <= 1"),
])  # fmt: skip
def test_invalid_values_are_refused_at_construction(make: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        make()


def run(*, slots: int, limit: float, intervals: int = 40) -> list[Workers]:
    """Return the workers over time of a query whose tasks share `slots` cores, however many tasks there are.

    A second brings 400 rows that take five seconds of work. A batch has the rows of the interval before it, unless they are
    more than the source hands out at once: work for `limit` seconds. What comes while it lasts longer than a second waits.
    """
    scaling = sp.Fuzzy(max_workers=60, every=1).scaling(Workers(1, 1))
    state, shown, interval = scaling.init(), [], 1.0
    for _ in range(intervals):
        tasks = state.workers.plq
        work = min(5.0 * interval, limit)
        rows, took = round(80 * work / tasks), work / min(slots, tasks)
        plq = SamplingPeriod(interval, (work / tasks,) * tasks, (rows,) * tasks, (rows,) * tasks)
        wlq = SamplingPeriod(interval, (0.9 * interval,), (10,), (10,))
        waiting = round(rows * tasks / interval * max(0.0, took - 1.0))
        state, decision = scaling.decide(scaling.observe(state, StageSamples(plq, wlq, backlog=waiting)))
        shown.append(decision.value)
        interval = max(1.0, took)
    return shown


@pytest.mark.parametrize("limit", [1e9, 5.0], ids=["a source that hands out all", "a source that holds back"])
def test_a_cluster_that_refuses_executors_gets_bounded_requests(limit: float):
    """Two slots, and work for five: the rest waits, and the policy requests no more than the work and the rest would need.

    Each batch lasts two and a half times as long as the one before, so that with the work of an interval that of two and a
    half waits: five workers for the one, twelve and a half for the other, nine tenths busy.
    """
    shown = run(slots=2, limit=limit)
    assert max(workers.plq for workers in shown) <= math.ceil(17.5 / 0.9)


def test_a_cluster_that_grants_them_gets_as_many_as_the_work_needs():
    shown = run(slots=60, limit=1e9)
    assert all(5 <= workers.plq <= 7 for workers in shown[-10:]), shown
