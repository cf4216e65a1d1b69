"""The fuzzy controller as an elasticity policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from skypane.control.elasticity.explaining import explanation, figures
from skypane.control.elasticity.fuzzy import FuzzyController
from skypane.control.elasticity.situation import ScalingPolicy, Situation, fitted
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.types import FloatArray


@dataclass(frozen=True)
class FuzzyPolicy(ScalingPolicy):
    """Two-level adaptation of paper 5: PLQ and WLQ workers by twelve rules."""

    controller: FuzzyController = field(default_factory=FuzzyController)
    name: ClassVar[str] = "fuzzy"

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        controller = self.controller
        after, by_rules = (
            self._after(one, situation, max_workers) for one in (controller, replace(controller, setpoint=None))
        )
        found = controller.infer(*self._inputs(situation), np.array(max_workers))
        setpoint = controller.setpoint if after != by_rules else None
        because = explanation(situation, found, after, setpoint)
        return Decision("workers", after, because, figures(found, controller.rules))

    def _after(self, controller: FuzzyController, situation: Situation, max_workers: int) -> Workers:
        now = situation.workers
        n, m = controller.decide(*self._inputs(situation), now.plq, now.wlq, max_workers)
        return fitted(int(n), now.wlq if math.isnan(situation.rho_wlq) else int(m), max_workers)

    def _inputs(self, situation: Situation) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the controller's inputs; a WLQ that was not measured, as no window was due, counts as acceptable."""
        rho_wlq = situation.rho_wlq
        if math.isnan(rho_wlq) and not math.isnan(situation.rho_plq):
            rho_wlq = self.controller.rho_wlq.acceptable.left
        return np.array(situation.rho_plq), np.array(situation.sigma), np.array(rho_wlq)
