"""What a control interval showed: sums over its sampling intervals, from which a policy's situation is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skypane.control.monitoring import Period, utilisation
from skypane.control.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class Stages:
    """What a sampling interval showed of both stages; None where it could not be measured.

    arrived     tuples that came
    backlog     tuples that wait after it
    wlq_tasks   tasks that the WLQ had at once: more workers would have had nothing to do; None: no limit is known
    used_plq    PLQ workers that its work would have kept busy (Period.needed); None: it was not for the law of splitting to
                say who gets some
    used_wlq    WLQ workers that its work would have kept busy, or that could be given any
    """

    plq: Period | None
    wlq: Period | None
    arrived: int = 0
    backlog: int = 0
    wlq_tasks: int | None = None
    used_plq: int | None = None
    used_wlq: int | None = None


@dataclass(frozen=True, slots=True)
class Sums(JsonState):
    """Sums over the sampling intervals of a control interval; counts say how many of them knew the value."""

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

    def plus(self, measured: Stages, rho_cap: float) -> Sums:
        """Return the sums with one sampling interval more; a larger utilisation factor counts as the cap."""
        plq, wlq = measured.plq, measured.wlq
        rho_plq, rho_wlq = (_rho(stage, rho_cap) for stage in (plq, wlq))
        return Sums(
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


def _rho(period: Period | None, cap: float) -> float | None:
    found = None if period is None else utilisation(period)
    return None if found is None else min(found.rho, cap)


def _most_of(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
