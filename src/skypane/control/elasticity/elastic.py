"""When a policy of elasticity is asked, and what of its answer is done: cadence, hysteresis, cooldown, bounds.

A control interval is several sampling intervals of the first level (paper 5: 2.5 s and 250 ms), so that splitting has
settled before its failure to keep up is taken for a lack of workers. Over it, rho is the mean of the samples, sigma
the partitions over the panes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from skypane.control.elasticity.situation import Policy, Situation
from skypane.control.forecast import Holt, HoltState
from skypane.control.law import ControlLaw, Decision
from skypane.control.monitoring import Period, utilisation
from skypane.control.snapshots import JsonState
from skypane.control.workers import Workers
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Stages:
    """What a sampling interval showed of both stages; None where it could not be measured.

    arrived     tuples that came
    backlog     tuples that wait after it
    wlq_tasks   tasks that the WLQ had at once: more workers would have had nothing to do; None: no limit is known
    """

    plq: Period | None
    wlq: Period | None
    arrived: int = 0
    backlog: int = 0
    wlq_tasks: int | None = None


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


@dataclass(frozen=True, slots=True)
class ElasticState(JsonState):
    """What the law remembers.

    workers    what there is
    sums       of this control interval
    backlog    tuples that wait now
    calm       control intervals since workers were changed
    because    the last decision's line
    """

    workers: Workers
    sums: Sums = field(default_factory=Sums)
    backlog: int = 0
    calm: int = 0
    forecast: HoltState = field(default_factory=HoltState)
    because: str = ""


@dataclass(frozen=True)
class Elastic(ControlLaw[ElasticState, Stages, None, Workers]):
    """The second level of adaptation.

    policy              proposes workers from what a control interval showed
    most                N, workers of both stages together
    start               workers at first
    least_plq, ...      bounds of each stage
    every               sampling intervals in a control interval
    hysteresis          a change of a stage by a smaller share of its workers is not made
    cooldown            control intervals in which workers are not taken away after a change; more come at any time
    dry_run             decisions are told, and not made
    """

    policy: Policy
    most: int
    start: Workers = field(default_factory=lambda: Workers(1, 1))
    least_plq: int = 1
    most_plq: int | None = None
    least_wlq: int = 1
    most_wlq: int | None = None
    every: int = 10
    hysteresis: float = 0.0
    cooldown: int = 0
    dry_run: bool = False
    holt: Holt = field(default_factory=Holt)
    rho_cap: float = 10.0

    State = ElasticState

    def __post_init__(self) -> None:
        if self.most < 2:
            raise ConfigError(f"max_workers must be at least 2, one for each stage, got {self.most}")
        for stage in ("plq", "wlq"):
            least, most = self._bounds(stage)
            if not 1 <= least <= most <= self.most:
                raise ConfigError(f"need 1 <= least_{stage} <= most_{stage} <= {self.most}, got {least} and {most}")
        if self.least_plq + self.least_wlq > self.most:
            raise ConfigError(f"the least of both stages, {self.least_plq} + {self.least_wlq}, exceeds {self.most}")
        if self.every < 1 or self.cooldown < 0 or not 0 <= self.hysteresis < 1:
            raise ConfigError(
                f"need every >= 1, cooldown >= 0, 0 <= hysteresis < 1, got {self.every}, {self.cooldown}, "
                f"{self.hysteresis}"
            )

    def init(self) -> ElasticState:
        return ElasticState(self.bounded(self.start))

    def observe(self, state: ElasticState, measured: Stages) -> ElasticState:
        plq, wlq, sums = measured.plq, measured.wlq, state.sums
        rho_plq, rho_wlq = self._rho(plq), self._rho(wlq)
        return replace(
            state,
            backlog=measured.backlog,
            sums=Sums(
                samples=sums.samples + 1,
                seconds=sums.seconds + next((stage.seconds for stage in (plq, wlq) if stage), 0.0),
                arrived=sums.arrived + measured.arrived,
                rho_plq=sums.rho_plq + (rho_plq or 0.0),
                plq_samples=sums.plq_samples + (rho_plq is not None),
                rho_wlq=sums.rho_wlq + (rho_wlq or 0.0),
                wlq_samples=sums.wlq_samples + (rho_wlq is not None),
                panes=sums.panes + (plq.panes if plq else 0),
                partitions=sums.partitions + (plq.partitions if plq else 0),
                processed=sums.processed + (sum(plq.processed) if plq else 0),
                busy_plq=sums.busy_plq + (sum(plq.busy) if plq else 0.0),
                busy_wlq=sums.busy_wlq + (sum(wlq.busy) if wlq else 0.0),
                wlq_tasks=_most_of(sums.wlq_tasks, measured.wlq_tasks),
            ),
        )

    def due(self, state: ElasticState) -> bool:
        """Return whether a control interval has ended, so that decide() asks the policy."""
        return state.sums.samples >= self.every

    def moved(self, state: ElasticState, workers: Workers) -> ElasticState:
        """Return the state after workers were changed by another hand; ConfigError if they are out of bounds."""
        if self.bounded(workers) != workers:
            (low_plq, high_plq), (low_wlq, high_wlq) = self._bounds("plq"), self._bounds("wlq")
            raise ConfigError(
                f"PLQ {workers.plq} and WLQ {workers.wlq} workers are out of the bounds of elastic=: PLQ {low_plq} to "
                f"{high_plq}, WLQ {low_wlq} to {high_wlq}, {self.most} together"
            )
        return replace(state, workers=workers, sums=Sums(), calm=0)

    def decide(self, state: ElasticState, known: None = None) -> tuple[ElasticState, Decision[Workers]]:  # noqa: ARG002
        """Decide at the end of a control interval; before it, workers stay as they are."""
        now = state.workers
        if not self.due(state):
            because = f"{state.sums.samples} of {self.every} sampling intervals measured"
            return state, Decision("workers", now, because)
        if state.sums.seconds > 0:
            forecast = self.holt.observe(state.forecast, state.sums.arrived / state.sums.seconds)
        else:
            forecast = state.forecast
        situation = self._situation(state, forecast)
        proposal = self.policy.propose(situation, self.most)
        after, notes = self._made(state, proposal.workers)
        because = "; ".join([proposal.because, *notes])
        figures = {
            "rho plq": situation.rho_plq,
            "rho wlq": situation.rho_wlq,
            "sigma": situation.sigma,
            "backlog": float(situation.backlog),
            **proposal.figures,
        }
        known_figures = {name: value for name, value in figures.items() if math.isfinite(value)}
        calm = 0 if after != now else state.calm + 1
        state = replace(state, workers=after, sums=Sums(), calm=calm, forecast=forecast, because=because)
        return state, Decision("workers", after, because, known_figures)

    def _made(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """Return the workers to have, of those proposed, and what held them back."""
        now, notes, tasks = state.workers, [], state.sums.wlq_tasks
        if tasks is not None and wanted.wlq > max(now.wlq, tasks, 1):
            notes.append(f"the WLQ had {tasks} windows at once, at most")
            wanted = Workers(wanted.plq, max(now.wlq, tasks, 1))
        plq, wlq = (self._damped(before, after) for before, after in ((now.plq, wanted.plq), (now.wlq, wanted.wlq)))
        if state.calm < self.cooldown and (plq < now.plq or wlq < now.wlq):
            notes.append(f"none taken away for {self.cooldown - state.calm} intervals more")
            plq, wlq = max(plq, now.plq), max(wlq, now.wlq)
        after = self.bounded(Workers(plq, wlq))
        if after != wanted:
            notes.append(f"made PLQ {after.plq}, WLQ {after.wlq}")
        if self.dry_run and after != now:
            notes.append("dry run: not done")
            after = now
        return after, notes

    def _damped(self, now: int, wanted: int) -> int:
        return now if abs(wanted - now) < self.hysteresis * now else wanted

    def bounded(self, workers: Workers) -> Workers:
        """Return workers within the bounds of each stage and of both."""
        (low_plq, high_plq), (low_wlq, high_wlq) = self._bounds("plq"), self._bounds("wlq")
        plq = min(max(workers.plq, low_plq), high_plq, self.most - low_wlq)
        return Workers(plq, min(max(workers.wlq, low_wlq), high_wlq, self.most - plq))

    def _bounds(self, stage: str) -> tuple[int, int]:
        most = getattr(self, f"most_{stage}")
        return getattr(self, f"least_{stage}"), self.most if most is None else most

    def _rho(self, period: Period | None) -> float | None:
        found = None if period is None else utilisation(period)
        return None if found is None else min(found.rho, self.rho_cap)

    def _situation(self, state: ElasticState, forecast: HoltState) -> Situation:
        sums = state.sums
        return Situation(
            workers=state.workers,
            rho_plq=sums.rho_plq / sums.plq_samples if sums.plq_samples else math.nan,
            rho_wlq=sums.rho_wlq / sums.wlq_samples if sums.wlq_samples else math.nan,
            sigma=sums.partitions / sums.panes if sums.panes else math.nan,
            rate=self.holt.forecast(forecast),
            backlog=state.backlog,
            cost_plq=sums.busy_plq / sums.processed if sums.processed else None,
            cost_wlq=sums.busy_wlq / sums.processed if sums.processed and sums.wlq_samples else None,
        )


def _most_of(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
