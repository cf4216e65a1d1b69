"""Measurements of a control interval: sums over its sampling intervals, from which a policy's situation is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skypane.control.forecast import RateAhead
from skypane.control.monitoring import SamplingPeriod, utilisation
from skypane.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class StageSamples:
    """Measurements of both stages in a sampling interval; None for a stage that could not be measured.

    arrived     tuples that arrived
    backlog     tuples that wait at its end
    ahead       a rate that the sources state for a time to come
    wlq_tasks   tasks that the WLQ had at once, beyond which workers would be idle; None: unknown
    used_plq    PLQ workers that the work would keep busy (SamplingPeriod.needed); None: the splitting policy did not
                route the rows
    used_wlq    WLQ workers that the work would keep busy, or that could get any work
    """

    plq: SamplingPeriod | None
    wlq: SamplingPeriod | None
    arrived: int = 0
    backlog: int = 0
    wlq_tasks: int | None = None
    used_plq: int | None = None
    used_wlq: int | None = None
    ahead: RateAhead | None = None


@dataclass(frozen=True, slots=True)
class IntervalSums(JsonState):
    """Sums over the sampling intervals of a control interval, and the number of intervals with a value for each rho."""

    samples: int = 0
    seconds: float = 0.0
    arrived: int = 0
    rho_plq: float = 0.0
    plq_samples: int = 0
    rho_wlq: float = 0.0
    wlq_samples: int = 0
    panes: int = 0
    partitions: int = 0
    processed: int = 0
    busy_plq: float = 0.0
    busy_wlq: float = 0.0
    wlq_tasks: int | None = None
    used_plq: int | None = None
    used_wlq: int | None = None

    def plus(self, measured: StageSamples, rho_cap: float) -> IntervalSums:
        """Return the sums with one more sampling interval; utilisation factors are cut to the cap."""
        plq, wlq = measured.plq, measured.wlq
        rho_plq, rho_wlq = (_rho(stage, rho_cap) for stage in (plq, wlq))
        return IntervalSums(
            samples=self.samples + 1,
            seconds=self.seconds + next((stage.seconds for stage in (plq, wlq) if stage), 0.0),
            arrived=self.arrived + measured.arrived,
            rho_plq=self.rho_plq + (rho_plq or 0.0),
            plq_samples=self.plq_samples + (rho_plq is not None),
            rho_wlq=self.rho_wlq + (rho_wlq or 0.0),
            wlq_samples=self.wlq_samples + (rho_wlq is not None),
            panes=self.panes + (plq.panes if plq else 0),
            partitions=self.partitions + (plq.partitions if plq else 0),
            processed=self.processed + (sum(plq.processed) if plq else 0),
            busy_plq=self.busy_plq + (sum(plq.busy) if plq else 0.0),
            busy_wlq=self.busy_wlq + (sum(wlq.busy) if wlq else 0.0),
            wlq_tasks=_most_of(self.wlq_tasks, measured.wlq_tasks),
            used_plq=_most_of(self.used_plq, measured.used_plq),
            used_wlq=_most_of(self.used_wlq, measured.used_wlq),
        )

    @property
    def mean_rho_plq(self) -> float:
        return self.rho_plq / self.plq_samples if self.plq_samples else math.nan

    @property
    def mean_rho_wlq(self) -> float:
        return self.rho_wlq / self.wlq_samples if self.wlq_samples else math.nan


def _rho(period: SamplingPeriod | None, cap: float) -> float | None:
    found = None if period is None else utilisation(period)
    return None if found is None else min(found.rho, cap)


def _most_of(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
