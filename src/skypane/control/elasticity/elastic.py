"""Apply an elasticity policy: cadence of its decisions, hysteresis, cooldown and bounds.

A control interval consists of several sampling intervals of the first level (paper 5: 2.5 s and 250 ms), so that
splitting has settled before high utilisation is taken for a lack of workers. Over a control interval, rho is the mean
of the samples, and sigma the number of partitions divided by that of panes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from skypane.control.elasticity.interval import IntervalSums, StageSamples
from skypane.control.elasticity.limits import ScalingLimits
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.forecast import Holt, HoltState, RateAhead
from skypane.control.parallelism import Workers
from skypane.policy import Decision, Policy
from skypane.snapshots import ADDED, JsonState, renamed
from skypane.types import ConfigError, micros
from skypane.wording import count, counted, seconds

LEAST_SHOWN_BACKLOG = 0.05
"""Least contribution to rho from which the backlog is mentioned in the reason."""


@dataclass(frozen=True, slots=True)
class ElasticState(JsonState):
    """State of elasticity.

    workers              current numbers of workers
    sums                 sums over this control interval
    backlog              tuples that wait now
    ahead                a rate that the sources state for a time to come
    stable               control intervals since the last change of workers
    used_plq, used_wlq   workers that got any work in each of the last `idle_timeout` control intervals
    forecast             state of the forecast of the rate
    because              reason of the last decision
    """

    workers: Workers
    sums: IntervalSums = field(default_factory=IntervalSums)
    backlog: int = 0
    stable: int = field(default=0, metadata=renamed("calm"))
    used_plq: tuple[int, ...] = ()
    used_wlq: tuple[int, ...] = ()
    forecast: HoltState = field(default_factory=HoltState)
    because: str = ""
    ahead: RateAhead | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Elastic(ScalingLimits, Policy[ElasticState, StageSamples, None, Workers]):
    """The second level of adaptation: a policy whose proposals are limited.

    policy       proposes workers from the measurements of a control interval
    max_workers  N, the largest number of workers of both stages together
    start        initial workers
    holt         forecaster of the rate
    rho_cap      larger utilisation factors count as this value
    """

    policy: ScalingPolicy
    max_workers: int
    start: Workers = field(default_factory=lambda: Workers(1, 1))
    holt: Holt = field(default_factory=Holt)
    rho_cap: float = 10.0

    State = ElasticState

    def __post_init__(self) -> None:
        self.check(self.max_workers)

    def init(self) -> ElasticState:
        return ElasticState(self.bounded(self.start, self.max_workers))

    def observe(self, state: ElasticState, measured: StageSamples) -> ElasticState:
        ahead = measured.ahead if self.policy.looks_ahead else None
        return replace(state, backlog=measured.backlog, ahead=ahead, sums=state.sums.plus(measured, self.rho_cap))

    def due(self, state: ElasticState) -> bool:
        """Return whether the control interval has ended, so that decide() calls the policy."""
        intervals, seconds = self.cadence
        return state.sums.samples >= intervals and state.sums.seconds >= seconds

    def so_far(self, state: ElasticState, intervals: str = "sampling intervals") -> str:
        """Return the progress of the control interval: "2 of 10 sampling intervals", "1.2 s of 2.5 s"."""
        needed, duration = self.cadence
        if not duration:
            return f"{state.sums.samples} of {needed} {intervals}"
        return f"{seconds(state.sums.seconds)} of {seconds(duration)}"

    def moved(self, state: ElasticState, workers: Workers) -> ElasticState:
        """Return the state after an external change of workers; raise ConfigError if they are out of bounds."""
        if self.bounded(workers, self.max_workers) != workers:
            (low_plq, high_plq), (low_wlq, high_wlq) = (
                self.bounds("plq", self.max_workers),
                self.bounds("wlq", self.max_workers),
            )
            raise ConfigError(
                f"PLQ {workers.plq} and WLQ {workers.wlq} workers are out of the bounds of elastic=: PLQ {low_plq} to "
                f"{high_plq}, WLQ {low_wlq} to {high_wlq}, {self.max_workers} together"
            )
        return replace(state, workers=workers, sums=IntervalSums(), stable=0, used_plq=(), used_wlq=())

    def decide(self, state: ElasticState, known: None = None) -> tuple[ElasticState, Decision[Workers]]:  # noqa: ARG002
        """Return the workers from now on; they change only at the end of a control interval."""
        now = state.workers
        if not self.due(state):
            return state, Decision("workers", now, f"{self.so_far(state)} measured")
        if state.sums.seconds > 0:
            forecast = self.holt.observe(state.forecast, state.sums.arrived / state.sums.seconds)
        else:
            forecast = state.forecast
        situation = self._situation(state, forecast)
        proposal = self.policy.propose(situation, self.max_workers)
        after, notes = self._made(state, proposal.value)
        if self._waiting(state, situation.cost_plq, state.workers.plq) >= LEAST_SHOWN_BACKLOG:
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
        stable = 0 if after != now else state.stable + 1
        state = replace(
            state,
            workers=after,
            sums=IntervalSums(),
            stable=stable,
            used_plq=self._used(state, "plq"),
            used_wlq=self._used(state, "wlq"),
            forecast=forecast,
            because=because,
        )
        return state, Decision("workers", after, because, known_figures)

    def _made(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """Return the proposed workers after all limits, and notes on the limits that applied."""
        now, proposed, notes = state.workers, wanted, list[str]()
        for useful in (self._with_windows, self._with_work):
            wanted, note = useful(state, wanted)
            notes += note
        plq, wlq = (self._damped(before, after) for before, after in ((now.plq, wanted.plq), (now.wlq, wanted.wlq)))
        if state.stable < self.cooldown and (plq < now.plq or wlq < now.wlq):
            notes.append(f"no workers removed for {counted(self.cooldown - state.stable, 'more intervals')}")
            plq, wlq = max(plq, now.plq), max(wlq, now.wlq)
        after = self.bounded(Workers(plq, wlq), self.max_workers)
        if after != proposed:
            notes.append(f"made PLQ {after.plq}, WLQ {after.wlq}")
        if self.dry_run and after != now:
            notes.append("dry run: not done")
            after = now
        return after, notes

    def _with_windows(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """Add no more WLQ workers than windows were due at once."""
        tasks, now = state.sums.wlq_tasks, state.workers.wlq
        if tasks is None or wanted.wlq <= max(now, tasks, 1):
            return wanted, []
        return Workers(wanted.plq, max(now, tasks, 1)), [f"the WLQ had {tasks} windows at once, at most"]

    def _with_work(self, state: ElasticState, wanted: Workers) -> tuple[Workers, list[str]]:
        """Add no workers to a stage that has one without work, and remove those that got none for `idle_timeout` intervals.

        Paper 5's rules use only rho, which is measured over the workers with work: workers without work do not lower
        it, and the rules would add workers forever (docs/control.md, "Workers without work"). PLQ workers may be
        needed as soon as panes are split more, so they are limited only while the PLQ keeps up, and no higher rate is
        stated, for which workers wait. A WLQ worker without a task could not have got one from any window.
        """
        notes = []
        for stage, keeps_up in (("plq", state.sums.mean_rho_plq < 1 and not self._rises(state)), ("wlq", True)):
            used, now = getattr(state.sums, f"used_{stage}"), getattr(state.workers, stage)
            history = self._used(state, stage)
            if not history or used >= now or not keeps_up:
                continue
            limit = min(now, max(1, *history)) if len(history) >= self.idle_timeout else now
            if getattr(wanted, stage) > limit:
                wanted = replace(wanted, **{stage: limit})
                notes.append(f"{now - used} of {now} {stage.upper()} workers got no work")
        return wanted, notes

    def _rises(self, state: ElasticState) -> bool:
        """Return whether the sources state a higher rate than the control interval has had."""
        return state.ahead is not None and state.ahead.rate * state.sums.seconds > state.sums.arrived

    def _used(self, state: ElasticState, stage: str) -> tuple[int, ...]:
        """Return the workers with work in the last control intervals, including the one that ends now."""
        used: int | None = getattr(state.sums, f"used_{stage}")
        if not self.idle_timeout or used is None:
            return ()
        earlier: tuple[int, ...] = getattr(state, f"used_{stage}")
        return (*earlier, used)[-self.idle_timeout :]

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
            ahead=state.ahead,
        )

    def _waiting(self, state: ElasticState, cost: float | None, workers: int) -> float:
        """Return the utilisation of a stage by the backlog alone, if it is to be processed within `catch_up`.

        If the control interval is longer than `catch_up`, it counts instead, since the next decision is at its end.
        """
        if self.catch_up is None or cost is None:
            return 0.0
        within = max(micros(self.catch_up) / 1e6, state.sums.seconds)
        return min(state.backlog * cost / (workers * within), self.rho_cap)
