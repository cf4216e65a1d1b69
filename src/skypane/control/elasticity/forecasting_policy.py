"""Workers from a forecast of the rate and the measured cost of a tuple (paper 3, section 3.2, equations 1a and 1b).

    rate c_plq / n = 1 - H                n workers of the operator, each with the headroom H
    n capacity c_wlq / m = 1 - H          m workers that merge the output of n workers close to saturation

The backlog must be processed within the latency bound, so backlog / bound is added to the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from skypane.control.elasticity.situation import Proposal, ScalingPolicy, Situation, fitted
from skypane.types import ConfigError, Duration, micros


@dataclass(frozen=True)
class ModelPolicy(ScalingPolicy):
    """headroom: H, the share of a worker that stays free; latency: the bound on the latency of a result."""

    headroom: float = 0.1
    latency: Duration = "2 seconds"
    name: ClassVar[str] = "model"

    def __post_init__(self) -> None:
        if not 0 <= self.headroom < 1:
            raise ConfigError(f"headroom is a share of a worker, need 0 <= headroom < 1, got {self.headroom}")
        if micros(self.latency, "latency") <= 0:
            raise ConfigError(f"latency must be longer than 0, got {self.latency!r}")

    def propose(self, situation: Situation, most: int) -> Proposal:
        now, rate, cost = situation.workers, situation.rate, situation.cost_plq
        if rate is None or cost is None:
            return Proposal(now, f"no forecast of the rate or no cost yet: PLQ stays at {now.plq}, WLQ at {now.wlq}")
        rate += situation.backlog / (micros(self.latency) / 1e6)
        plq = self._workers(rate * cost)
        wlq = now.wlq
        if situation.cost_wlq is not None and cost > 0:
            capacity = 1 / cost  # tuples per second of a worker close to saturation
            wlq = self._workers(min(plq * capacity, rate / (1 - self.headroom)) * situation.cost_wlq)
        after = fitted(plq, wlq, most)
        because = (
            f"{rate:.0f} tuples/s x {cost * 1e6:.1f} us / {1 - self.headroom:.2f} -> PLQ {now.plq} -> {after.plq}, "
            f"WLQ {now.wlq} -> {after.wlq}"
        )
        figures = {"rate": rate, "cost plq": cost, "cost wlq": situation.cost_wlq or 0.0, "headroom": self.headroom}
        return Proposal(after, because, figures)

    def _workers(self, load: float) -> int:
        """Return the workers for `load` worker-seconds per second in all, with a load of 1 - H each."""
        return max(1, math.ceil(round(load / (1 - self.headroom), 9)))
