"""Workers from a forecast of the rate and the measured cost of a tuple (paper 3, section 3.2, equations 1a and 1b).

    rate c_plq / n = 1 - H                n workers of the operator, each with the headroom H
    n capacity c_wlq / m = 1 - H          m workers that merge the output of n workers close to saturation

The backlog must be processed within the latency bound, so backlog / bound is added to the rate. If the sources state a
higher rate for a time to come than the forecast, it counts instead: its workers start before its tuples come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skypane.control.elasticity.situation import ScalingPolicy, Situation, fitted
from skypane.control.parallelism import Workers
from skypane.control.sizing import check_sizing, workers_for
from skypane.policy import Decision
from skypane.types import Duration, micros


@dataclass(frozen=True)
class ModelPolicy(ScalingPolicy):
    """headroom: H, the share of a worker that stays free; latency: the bound on the latency of a result."""

    headroom: float = 0.1
    latency: Duration = "2 seconds"
    name: ClassVar[str] = "model"
    looks_ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_sizing(self.headroom, self.latency)

    @property
    def promised(self) -> float:
        return micros(self.latency) / 1e6

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        now, rate, cost, stated = situation.workers, situation.rate, situation.cost_plq, ""
        if situation.ahead is not None and situation.ahead.rate > (rate or 0.0):
            rate, stated = situation.ahead.rate, f" ({situation.ahead.because})"
        if rate is None or cost is None:
            because = f"no forecast of the rate or no cost yet: PLQ stays at {now.plq}, WLQ at {now.wlq}"
            return Decision("workers", now, because)
        rate += situation.backlog / (micros(self.latency) / 1e6)
        plq = workers_for(rate, cost, self.headroom)
        wlq = now.wlq
        if situation.cost_wlq is not None and cost > 0:
            capacity = 1 / cost  # tuples per second of a worker close to saturation
            wlq = workers_for(min(plq * capacity, rate / (1 - self.headroom)), situation.cost_wlq, self.headroom)
        after = fitted(plq, wlq, max_workers)
        because = (
            f"{rate:.0f} tuples/s{stated} x {cost * 1e6:.1f} us / {1 - self.headroom:.2f} -> PLQ {now.plq} -> {after.plq}, "
            f"WLQ {now.wlq} -> {after.wlq}"
        )
        figures = {"rate": rate, "cost plq": cost, "cost wlq": situation.cost_wlq or 0.0, "headroom": self.headroom}
        return Decision("workers", after, because, figures)
