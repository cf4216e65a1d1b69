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
    """The fuzzy controller with a fixed utilisation of the window level, which keeps its one worker."""

    rho_wlq: float = 0.9
    fuzzy: FuzzyPolicy = field(default_factory=lambda: FuzzyPolicy(AS_RUN))
    name: ClassVar[str] = "plq alone"

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        found = self.fuzzy.propose(replace(situation, rho_wlq=self.rho_wlq), max_workers)
        return replace(found, value=Workers(min(found.value.plq, max_workers - 1), 1))


PLQ_ALONE: Final = PlqAlone()

ENDS_IDLE: Final = (
    "AS_PID holds rho where tuples go, and panes stay as split as their own rate requires, however many workers there are: "
    "rules 7 and 8 go on adding until those without work are taken away (docs/control.md, Workers without work)"
)
"""Why our runs have more workers than the paper's."""
