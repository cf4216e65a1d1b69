"""Values of which no workload, or part of one, is made, and the complaint about each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skypane.types import ConfigError
from skypane.workloads import (
    BurstyFleet,
    Classic,
    ConstantFleet,
    Drifting,
    EmpiricalDelay,
    ExponentialDelay,
    FluctuatingFleet,
    HeldBack,
    LognormalDelay,
    Map2,
    OnOff,
    ParetoDelay,
    Poisson,
    Presence,
    RandomWalk,
    Shared,
    Steps,
    UniformDelay,
    Workload,
    Zipf,
)


@pytest.mark.parametrize(("make", "complaint"), [
    (lambda: UniformDelay("0 s"), "need mean > 0, got mean='0 s'"),
    (lambda: ExponentialDelay("-1 s"), "need mean > 0"),
    (lambda: ParetoDelay("1 s", tail=1), "need 1 < tail < infinity for a finite mean, got tail=1"),
    (lambda: LognormalDelay("1 s", sigma=0), "need 0 < sigma"),
    (lambda: EmpiricalDelay(()), "need at least one measured delay"),
    (lambda: EmpiricalDelay((5, -3)), "need measured delays >= 0 microseconds, got -3"),
    (lambda: HeldBack(hold="0 s"), "need hold > 0"),
    (lambda: ConstantFleet(5, 4), "need low <= high < infinity, got low=5, high=4"),
    (lambda: ConstantFleet(0, 4), "need 0 < low"),
    (lambda: ConstantFleet(1, 4, streams=0), "need a whole number streams >= 1, got streams=0"),
    (lambda: FluctuatingFleet(1, 4, streams=3), "need an even number of streams to fluctuate in pairs, got streams=3"),
    (lambda: FluctuatingFleet(1, 4, shape="wave"), "need shape 'step' or 'trend', got shape='wave'"),  # type: ignore[arg-type]
    (lambda: FluctuatingFleet(1, 4, total="some"), "got total='some'"),  # type: ignore[arg-type]
    (lambda: BurstyFleet(0), "need 0 < rate"),
    (lambda: BurstyFleet(1, idle="0 s"), "need idle > 0"),
    (lambda: Zipf(0), "need a whole number keys >= 1, got keys=0"),
    (lambda: Zipf(5, float("inf")), "need 0 <= exponent < infinity"),
    (lambda: Zipf(5, move_by=0), "need a whole number move_by >= 1"),
    (lambda: Zipf(5, move_every="soon"), "move_every: cannot read 'soon'"),
    (lambda: Map2(0, 100), "need 0 < rate < infinity, got rate=0"),
    (lambda: Map2(1, 1.0), "need dispersion >= 1.669 with ratio=10.0"),
    (lambda: Map2(1, float("inf")), "need 0 < dispersion < infinity"),
    (lambda: Map2(1, 100, ratio=1), "need 1 < ratio < infinity, got ratio=1"),
    (lambda: Map2(1, 100, burst_share=1), "need 0 < burst_share < 1, got burst_share=1"),
    (lambda: Classic(d=0), "need a whole number d >= 1, got d=0"),
    (lambda: Classic(d=17), "need d <= 16, got d=17"),
    (lambda: Classic("round"), "need one of independent, correlated, anticorrelated for the points"),  # type: ignore[arg-type]
    (lambda: Drifting(("correlated",)), "need two kinds or more"),
    (lambda: Drifting(period="0 s"), "need period > 0"),
    (lambda: Steps(()), r"need rates >= 0, one of them above 0, got rates=\(\)"),
    (lambda: Steps((0, 0)), "one of them above 0"),
    (lambda: Steps((1, -1)), "need rates >= 0"),
    (lambda: Steps(every="0 s"), "need every > 0, got every='0 s'"),
    (lambda: RandomWalk(1, sigma=0), "need 0 < sigma"),
    (lambda: RandomWalk(1, span=1), "need 1 < span < infinity, got span=1"),
    (lambda: OnOff(1, on="-1 s"), "need on > 0"),
    (lambda: Shared(Poisson(1), 0), "need a whole number streams >= 1"),
    (lambda: Shared(Poisson(1), 2, -1), "need 0 <= exponent < infinity, got exponent=-1"),
    (lambda: Presence(stay="0 s"), "need stay > 0"),
    (lambda: Presence(stall_for="1 s"), "need both stall_every and stall_for, or neither"),
    (lambda: Workload(5), r"need arrivals with times\(\) or sent\(\), got 5"),  # type: ignore[arg-type]
    (lambda: Workload(Poisson(1), seed=-1), "need a whole number seed >= 0"),
    (lambda: Workload(Poisson(1), rows=1.5), "need a whole number rows >= 0, got rows=1.5"),  # type: ignore[arg-type]
    (lambda: Workload(Poisson(1), length="0 s"), "need length > 0"),
])  # fmt: skip
def test_an_invalid_value_is_refused(make: Callable[[], object], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        make()
