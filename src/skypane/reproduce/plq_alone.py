"""Runs that look at the pane level alone, as section 5.2 does: its workers are decided as if windows kept up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from skypane.control.elasticity.explaining import FuzzyPolicy
from skypane.control.elasticity.fuzzy import AS_RUN
from skypane.control.elasticity.situation import Policy, Proposal, Situation
from skypane.control.workers import Workers
from skypane.windows import Windows

PANES: Final = Windows.of("100 ms")


@dataclass(frozen=True)
class PlqAlone(Policy):
    """What the fuzzy controller decides where the window level has this utilisation; it keeps its one worker."""

    rho_wlq: float = 0.9
    fuzzy: FuzzyPolicy = field(default_factory=lambda: FuzzyPolicy(AS_RUN))
    name: ClassVar[str] = "plq alone"

    def propose(self, situation: Situation, most: int) -> Proposal:
        found = self.fuzzy.propose(replace(situation, rho_wlq=self.rho_wlq), most)
        return replace(found, workers=Workers(min(found.workers.plq, most - 1), 1))


PLQ_ALONE: Final = PlqAlone()

ENDS_IDLE: Final = (
    "AS_PID holds rho where tuples go, and panes stay as split as their own rate asks for, however many workers there are: "
    "rules 7 and 8 go on adding until those without work are taken away (docs/control.md, Workers without work)"
)
"""Why there are more workers here than the paper has."""
