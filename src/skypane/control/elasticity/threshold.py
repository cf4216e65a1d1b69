"""The policy of cluster managers, for comparison: keep the utilisation of each stage at a target.

workers' = ceil(workers x rho / target), unless rho is within `tolerance` of the target
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from skypane.control.elasticity.situation import ScalingPolicy, Situation, fitted
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.types import ConfigError


@dataclass(frozen=True)
class ThresholdPolicy(ScalingPolicy):
    """target: the utilisation to keep; tolerance: relative distance from it within which nothing changes."""

    target: float = 0.8
    tolerance: float = 0.1
    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1 or not 0 <= self.tolerance < 1:
            raise ConfigError(f"need 0 < target <= 1 and 0 <= tolerance < 1, got {self.target} and {self.tolerance}")

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        now = situation.workers
        after = fitted(
            self._workers(now.plq, situation.rho_plq), self._workers(now.wlq, situation.rho_wlq), max_workers
        )
        because = (
            f"rho of {situation.rho_plq:.2f} and {situation.rho_wlq:.2f} against {self.target:.2f} -> "
            f"PLQ {now.plq} -> {after.plq}, WLQ {now.wlq} -> {after.wlq}"
        )
        return Decision("workers", after, because, {"target": self.target})

    def _workers(self, workers: int, rho: float) -> int:
        if not 0 <= rho < math.inf or abs(rho / self.target - 1) <= self.tolerance:
            return workers
        return math.ceil(round(workers * rho / self.target, 9))
