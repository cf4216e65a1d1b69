from __future__ import annotations

import math

from skypane.control.elasticity.interval import IntervalSums, StageSamples
from skypane.control.monitoring import SamplingPeriod


def test_both_stages_are_summed_by_hand():
    """A tuple of the PLQ costs 10 ms, of which two seconds serve 200; a task of the WLQ 50 ms, of which they serve 40."""
    first = StageSamples(
        SamplingPeriod(2.0, (1.0,), (100,), (150,), panes=2, partitions=3),
        SamplingPeriod(2.0, (0.5,), (10,), (20,)),
        arrived=120,
        wlq_tasks=3,
        used_plq=2,
        used_wlq=1,
    )
    second = StageSamples(
        SamplingPeriod(2.0, (1.0,), (100,), (250,), panes=1, partitions=4),
        SamplingPeriod(2.0, (0.5,), (10,), (60,)),
        arrived=80,
        wlq_tasks=2,
        used_plq=4,
        used_wlq=None,
    )
    sums = IntervalSums().plus(first, rho_cap=10.0).plus(second, rho_cap=10.0)
    assert sums == IntervalSums(
        samples=2,
        seconds=4.0,
        arrived=200,
        rho_plq=0.75 + 1.25,
        plq_samples=2,
        rho_wlq=0.5 + 1.5,
        wlq_samples=2,
        panes=3,
        partitions=7,
        processed=200,
        busy_plq=2.0,
        busy_wlq=1.0,
        wlq_tasks=3,
        used_plq=4,
        used_wlq=1,
    )
    assert (sums.mean_rho_plq, sums.mean_rho_wlq) == (1.0, 1.0)


def test_a_stage_that_was_not_measured_adds_nothing():
    wlq = SamplingPeriod(1.0, (0.5,), (10,), (10,))
    sums = IntervalSums().plus(StageSamples(None, wlq), rho_cap=10.0).plus(StageSamples(None, None), rho_cap=10.0)
    assert (sums.samples, sums.seconds, sums.rho_wlq, sums.wlq_samples) == (2, 1.0, 0.5, 1)
    assert math.isnan(sums.mean_rho_plq)
    assert sums.mean_rho_wlq == 0.5


def test_a_utilisation_beyond_the_cap_counts_as_the_cap():
    """Of 40 tasks a second serves 20, the cap is 1.5."""
    sums = IntervalSums().plus(StageSamples(None, SamplingPeriod(1.0, (0.5,), (10,), (40,))), rho_cap=1.5)
    assert sums.rho_wlq == 1.5
