"""Runs of the pane level alone, as in section 5.2: its workers are decided as if the window level kept up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from skypane.control.elasticity.fuzzy import AS_RUN
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.windows import Windows

PANES: Final = Windows.of("100 ms")


@dataclass(frozen=True)
class PlqAlone(ScalingPolicy):
    """The fuzzy controller with a fixed utilisation of the window level, which keeps its one worker.

    sigma   the splitting factor that the controller is given; 1 in the paper's published code, so that rules 7 and 8,
            which add workers where panes are split, never fire; None: the measured one
    """

    rho_wlq: float = 0.9
    sigma: float | None = 1.0
    fuzzy: FuzzyPolicy = field(default_factory=lambda: FuzzyPolicy(AS_RUN))
    name: ClassVar[str] = "plq alone"

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        sigma = situation.sigma if self.sigma is None else self.sigma
        found = self.fuzzy.propose(replace(situation, rho_wlq=self.rho_wlq, sigma=sigma), max_workers)
        return replace(found, value=Workers(min(found.value.plq, max_workers - 1), 1))


PLQ_ALONE: Final = PlqAlone()
