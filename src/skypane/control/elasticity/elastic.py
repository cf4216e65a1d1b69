"""When a policy of elasticity is asked, and what of its answer is done: cadence, hysteresis, cooldown, bounds.

A control interval is several sampling intervals of the first level (paper 5: 2.5 s and 250 ms), so that splitting has
settled before its failure to keep up is taken for a lack of workers. Over it, rho is the mean of the samples, sigma
the partitions over the panes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from skypane.control.elasticity.interval import Stages, Sums
from skypane.control.elasticity.limits import Limits
from skypane.control.elasticity.situation import Policy, Situation
from skypane.control.forecast import Holt, HoltState
from skypane.control.law import ControlLaw, Decision
from skypane.control.snapshots import JsonState
from skypane.control.workers import Workers
from skypane.types import ConfigError, micros
from skypane.wording import count, seconds

TOLD = 0.05
"""What waits is told where it adds so much to rho."""


@dataclass(frozen=True, slots=True)
class ElasticState(JsonState):
    """What the law remembers.

    workers    what there is
    sums       of this control interval
    backlog    tuples that wait now
    calm       control intervals since workers were changed
    used       workers that got any work, in each of the last `idle` control intervals, by stage
    because    the last decision's line
    """

    workers: Workers
    sums: Sums = field(default_factory=Sums)
    backlog: int = 0
    calm: int = 0
    used_plq: tuple[int, ...] = ()
    used_wlq: tuple[int, ...] = ()
    forecast: HoltState = field(default_factory=HoltState)
    because: str = ""


@dataclass(frozen=True)
class Elastic(Limits, ControlLaw[ElasticState, Stages, None, Workers]):
    """The second level of adaptation: a policy, held to limits.

    policy   proposes workers from what a control interval showed
    most     N, workers of both stages together
    start    workers at first
    """

    policy: Policy
    most: int
    start: Workers = field(default_factory=lambda: Workers(1, 1))
    holt: Holt = field(default_factory=Holt)
    rho_cap: float = 10.0

    State = ElasticState

    def __post_init__(self) -> None:
        self.check(self.most)

    def init(self) -> ElasticState:
        return ElasticState(self.bounded(self.start, self.most))

    def observe(self, state: ElasticState, measured: Stages) -> ElasticState:
        return replace(state, backlog=measured.backlog, sums=state.sums.plus(measured, self.rho_cap))

    def due(self, state: ElasticState) -> bool:
        """Return whether a control interval has ended, so that decide() asks the policy."""
        intervals, seconds = self.cadence
        return state.sums.samples >= intervals and state.sums.seconds >= seconds

    def so_far(self, state: ElasticState, intervals: str = "sampling intervals") -> str:
        """Return how far the control interval has come: "2 of 10 sampling intervals", "1.2 s of 2.5 s"."""
        needed, duration = self.cadence
        if not duration:
            return f"{state.sums.samples} of {needed} {intervals}"
        return f"{seconds(state.sums.seconds)} of {seconds(duration)}"

    def moved(self, state: ElasticState, workers: Workers) -> ElasticState:
        """Return the state after workers were changed by another hand; ConfigError if they are out of bounds."""
        if self.bounded(workers, self.most) != workers:
            (low_plq, high_plq), (low_wlq, high_wlq) = self.bounds("plq", self.most), self.bounds("wlq", self.most)
            raise ConfigError(
                f"PLQ {workers.plq} and WLQ {workers.wlq} workers are out of the bounds of elastic=: PLQ {low_plq} to "
                f"{high_plq}, WLQ {low_wlq} to {high_wlq}, {self.most} together"
            )
        return replace(state, workers=workers, sums=Sums(), calm=0, used_plq=(), used_wlq=())

    def decide(self, state: ElasticState, known: None = None) -> tuple[ElasticState, Decision[Workers]]:  # noqa: ARG002
        """Decide at the end of a control interval; before it, workers stay as they are."""
        now = state.workers
        if not self.due(state):
            return state, Decision("workers", now, f"{self.so_far(state)} measured")
        if state.sums.seconds > 0:
            forecast = self.holt.observe(state.forecast, state.sums.arrived / state.sums.seconds)
        else:
            forecast = state.forecast
        situation = self._situation(state, forecast)
        proposal = self.policy.propose(situation, self.most)
        after, notes = self._made(state, proposal.workers)
        if self._waiting(state, situation.cost_plq, state.workers.plq) >= TOLD:
            notes.insert(0, "1 row waits" if state.backlog == 1 else f"{count(state.backlog)} rows wait")
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
        state = replace(
            state,
            workers=after,
            sums=Sums(),
            calm=calm,
            used_plq=self._used(state, "plq"),
            used_wlq=self._used(state, "wlq"),
            forecast=forecast,
            because=because,
        )
        return state, Decision("workers", after, because, known_figures)

    def _made(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """Return the workers to have, of those proposed, and what held them back."""
        now, proposed, notes = state.workers, wanted, list[str]()
        for useful in (self._with_windows, self._with_work):
            wanted, note = useful(state, wanted)
            notes += note
        plq, wlq = (self._damped(before, after) for before, after in ((now.plq, wanted.plq), (now.wlq, wanted.wlq)))
        if state.calm < self.cooldown and (plq < now.plq or wlq < now.wlq):
            notes.append(f"none taken away for {self.cooldown - state.calm} intervals more")
            plq, wlq = max(plq, now.plq), max(wlq, now.wlq)
        after = self.bounded(Workers(plq, wlq), self.most)
        if after != proposed:
            notes.append(f"made PLQ {after.plq}, WLQ {after.wlq}")
        if self.dry_run and after != now:
            notes.append("dry run: not done")
            after = now
        return after, notes

    def _with_windows(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """No more WLQ workers come than there were windows at once."""
        tasks, now = state.sums.wlq_tasks, state.workers.wlq
        if tasks is None or wanted.wlq <= max(now, tasks, 1):
            return wanted, []
        return Workers(wanted.plq, max(now, tasks, 1)), [f"the WLQ had {tasks} windows at once, at most"]

    def _with_work(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """None come beside one that got no work, and those that got none for long go: paper 5's rules look at rho alone.

        Rho is that of the workers that have work, so that others do not lower it, and the rules would add to them for
        ever (docs/control.md, "Workers without work"). In the PLQ they may be needed as soon as panes are split more: so
        this waits until the others keep up. A WLQ worker without a task is one that no window could have given any.
        """
        notes = []
        for stage, keeps_up in (("plq", state.sums.mean_rho_plq < 1), ("wlq", True)):
            used, now = getattr(state.sums, f"used_{stage}"), getattr(state.workers, stage)
            history = self._used(state, stage)
            if not history or used >= now or not keeps_up:
                continue
            most = min(now, max(1, *history)) if len(history) >= self.idle else now
            if getattr(wanted, stage) > most:
                wanted = replace(wanted, **{stage: most})
                notes.append(f"{now - used} of {now} {stage.upper()} workers got no work")
        return wanted, notes

    def _used(self, state: ElasticState, stage: str) -> tuple[int, ...]:
        """Return the workers that got work in the last control intervals, the one that ends now with them."""
        used: int | None = getattr(state.sums, f"used_{stage}")
        if not self.idle or used is None:
            return ()
        earlier: tuple[int, ...] = getattr(state, f"used_{stage}")
        return (*earlier, used)[-self.idle :]

    def _damped(self, now: int, wanted: int) -> int:
        return now if abs(wanted - now) < self.hysteresis * now else wanted

    def _situation(self, state: ElasticState, forecast: HoltState) -> Situation:
        sums, now = state.sums, state.workers
        cost_plq = sums.busy_plq / sums.processed if sums.processed else None
        cost_wlq = sums.busy_wlq / sums.processed if sums.processed and sums.wlq_samples else None
        return Situation(
            workers=now,
            rho_plq=sums.mean_rho_plq + self._waiting(state, cost_plq, now.plq),
            rho_wlq=sums.mean_rho_wlq + self._waiting(state, cost_wlq, now.wlq),
            sigma=sums.partitions / sums.panes if sums.panes else math.nan,
            rate=self.holt.forecast(forecast),
            backlog=state.backlog,
            cost_plq=cost_plq,
            cost_wlq=cost_wlq,
        )

    def _waiting(self, state: ElasticState, cost: float | None, workers: int) -> float:
        """Return by how much a stage would be utilised by what waits alone, were it worked off within `catch_up`.

        A control interval that is longer than that is what it has: nothing is decided before its end.
        """
        if self.catch_up is None or cost is None:
            return 0.0
        within = max(micros(self.catch_up) / 1e6, state.sums.seconds)
        return min(state.backlog * cost / (workers * within), self.rho_cap)
