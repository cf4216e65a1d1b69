"""Both stages in virtual time: monitored every T seconds, split and scaled by the engine's control policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.elasticity.interval import StageSamples
from skypane.control.monitoring import SamplingPeriod, joined, utilisation
from skypane.control.parallelism import Workers
from skypane.control.scheduling import scheduler
from skypane.control.splitting import Splitting
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.runtime.sim.cost_models import CostModel
from skypane.runtime.sim.pane_farm import PaneFarm, PartitionResults
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.window_farm import CompletedWindow, WindowFarm, WindowResult
from skypane.types import ConfigError
from skypane.windows import Windows


@dataclass(frozen=True, eq=False)
class SimulationSetup:
    """The configuration of a simulation.

    stream, windows   tuples, and the windows for which they were prepared; results are exact if tuples have points
    cost              the cost model
    splitting         the splitting policy of the first stage
    scheduling        WIN_RR, WIN_FB or WIN_FB_MERGE; None: only the first stage is simulated
    workers           initial workers of both stages
    elastic           the elasticity policy that changes them; None: they stay constant
    sampling          T: seconds between two measurements
    room              capacity of a first-stage queue, in tuples; the source waits while it is full; None: unbounded
    drain             whether to process the backlog after the last tuple: one more sample, of any length
    wlq_utilisation   how the elasticity policy measures the window level: "sampled" takes the mean of the sampling
                      intervals, as on Spark; "pending" takes the control interval as one, in which the tasks that wait
                      at its end count as scheduled, as in the published code of paper 5
    """

    stream: SimulatedStream
    windows: Windows
    cost: CostModel
    splitting: Splitting
    workers: Workers
    scheduling: str | None = "WIN_FB_MERGE"
    elastic: Elastic | None = None
    sampling: float = 1.0
    drain: bool = False
    room: int | None = None
    wlq_utilisation: Literal["sampled", "pending"] = "sampled"

    def __post_init__(self) -> None:
        if not self.sampling > 0:
            raise ConfigError(f"need sampling > 0 seconds, got {self.sampling}")
        if self.wlq_utilisation not in ("sampled", "pending"):
            raise ConfigError(f"wlq_utilisation must be 'sampled' or 'pending', got {self.wlq_utilisation!r}")
        if self.elastic is not None and self.scheduling == "WIN_RR":
            raise ConfigError("WIN_RR binds windows to workers and cannot be elastic; use WIN_FB or WIN_FB_MERGE")

    @property
    def most(self) -> Workers:
        """The largest number of workers of each stage."""
        return self.workers if self.elastic is None else Workers(self.elastic.max_workers, self.elastic.max_workers)


class SimulationSample(NamedTuple):
    """The measurements of one sampling interval.

    time               end of the interval, in seconds
    workers            workers during the interval
    rho_plq, rho_wlq   utilisation factors, NaN if unknown; with wlq_utilisation="pending", rho_wlq is that of the control
                       interval in its last sample, and NaN in the others
    sigma              splitting factor, NaN if no pane was closed
    theta              splitting threshold, infinite if panes are not split
    arrived            tuples that arrived
    backlog, waiting   tuples that have arrived and are not processed by the first stage, results held by the second
    idle_wlq           share of idle time of the second stage
    windows, merges, updates   windows answered; merge and update tasks finished
    delays             seconds from the closing of a window's last pane to its answer, one per answered window
    selected           tuples that the first stage passed on, per closed pane; NaN if none was closed
    share              these tuples as a share of those of their partitions; NaN if no result was sent
    latency            mean seconds from a pane's first tuple to each of its results; NaN if none was sent
    because            the decision of the elasticity policy and its reason
    plq, wlq           sampling periods of both stages; None: there is no second stage
    """

    time: float
    workers: Workers
    rho_plq: float
    rho_wlq: float
    sigma: float
    theta: float
    arrived: int
    backlog: int
    waiting: int
    idle_wlq: float
    windows: int
    delays: tuple[float, ...]
    merges: int
    updates: int
    selected: float
    share: float
    latency: float
    because: str
    plq: SamplingPeriod
    wlq: SamplingPeriod | None


def simulate(setup: SimulationSetup) -> Iterator[SimulationSample]:
    """Yield the sample of each interval until all tuples have arrived, and with `drain` a last one for the backlog."""
    policy, elastic = setup.splitting, setup.elastic
    state: Any = policy.init()
    scaling = None if elastic is None else elastic.init()
    workers = setup.workers if scaling is None else scaling.workers
    cost = setup.cost.tuples(1 << 16) if setup.stream.points is None else setup.cost.compared(1 << 16)
    plq = PaneFarm(setup.stream, cost, workers.plq, setup.most.plq, setup.room)
    wlq = None if setup.scheduling is None else _window_farm(setup, workers)
    now = 0.0
    of_interval: list[SamplingPeriod] = []
    while not plq.ended:
        now += setup.sampling
        interval = plq.advance(now, policy, state)
        theta = policy.theta(state) if isinstance(policy, ThresholdSplitting) else np.inf
        state = policy.observe(state, interval.sample)
        selected = _pass_on(interval.results, wlq, setup, now)
        period, answers, merges, updates = (None, [], 0, 0) if wlq is None else wlq.measured(setup.sampling)
        because = ""
        during, measured = workers, period
        if elastic is not None and scaling is not None:
            shown = _shown(interval.period, period, plq.backlog)
            if setup.wlq_utilisation == "pending" and wlq is not None and period is not None:
                of_interval.append(period)
                shown = _whole(shown, of_interval, wlq.pending, elastic, scaling)
                measured = shown.wlq
            scaling = elastic.observe(scaling, shown)
            scaling, decision = elastic.decide(scaling)
            workers, because = decision.value, decision.because
            plq.scale(workers.plq)
            if wlq is not None:
                wlq.scale(workers.wlq)
        sampled = SimulationSample(
            time=now,
            workers=during,
            rho_plq=_rho(interval.period),
            rho_wlq=np.nan if measured is None else _rho(measured),
            sigma=np.nan if interval.period.sigma is None else interval.period.sigma,
            theta=theta,
            arrived=sum(interval.period.scheduled),
            backlog=plq.backlog,
            waiting=0 if wlq is None else wlq.waiting,
            idle_wlq=np.nan if period is None else period.idle,
            windows=len(answers),
            delays=_delays(answers, setup),
            merges=merges,
            updates=updates,
            selected=selected / interval.period.panes if interval.period.panes else np.nan,
            share=selected / max(int(interval.results.tuples.sum()), 1) if selected else np.nan,
            latency=_latency(interval.results, setup.stream),
            because=because,
            plq=interval.period,
            wlq=period,
        )
        yield sampled
    if setup.drain and plq.ended:
        yield _rest(sampled, plq.finish(policy, state), wlq, setup)


def _shown(plq: SamplingPeriod, wlq: SamplingPeriod | None, backlog: int) -> StageSamples:
    used = None if wlq is None else wlq.needed()
    return StageSamples(plq, wlq, sum(plq.scheduled), backlog, used_plq=plq.needed(), used_wlq=used)


def _whole(
    shown: StageSamples, periods: list[SamplingPeriod], pending: int, elastic: Elastic, state: ElasticState
) -> StageSamples:
    """Return the samples with the window level measured over the control interval if it ends here, else without it.

    `periods` has the sampling periods of the control interval so far; it is emptied at the end.
    """
    without = replace(shown, wlq=None, used_wlq=None)
    if not elastic.due(elastic.observe(state, without)):
        return without
    whole = replace(joined(tuple(periods)), pending=pending)
    periods.clear()
    return replace(shown, wlq=whole, used_wlq=whole.needed())


def _rest(
    last: SimulationSample, results: PartitionResults, wlq: WindowFarm | None, setup: SimulationSetup
) -> SimulationSample:
    """Return the sample of the backlog; its time is that of the last answer."""
    _pass_on(results, wlq, setup, np.inf)
    ended = [float(results.time.max())] if len(results.time) else []
    answers = [] if wlq is None else wlq.measured(setup.sampling)[1]
    end = max([last.time, *ended, *(answer.time for answer in answers)])
    delays = _delays(answers, setup)
    return last._replace(
        time=end, windows=len(answers), delays=delays, arrived=0, backlog=0, because="the stream has ended"
    )


def _delays(answers: Sequence[CompletedWindow], setup: SimulationSetup) -> tuple[float, ...]:
    closed = setup.stream.closed
    return tuple(
        float(answer.time - closed[min(setup.windows.panes_of(answer.window)[-1], len(closed) - 1)])
        for answer in answers
    )


def _window_farm(setup: SimulationSetup, workers: Workers) -> WindowFarm:
    wlq = scheduler(setup.scheduling or "", setup.windows, workers.wlq, first_pane=0)
    return WindowFarm(wlq, setup.cost, setup.most.wlq, setup.stream.points)


def _pass_on(results: PartitionResults, wlq: WindowFarm | None, setup: SimulationSetup, now: float) -> float:
    """Send partition results to the second stage, and advance it to `now`; return the number of tuples in them."""
    rows = results.rows or (None,) * len(results.time)
    shares = np.ones(len(results.time)) if setup.stream.share is None else setup.stream.share[results.pane]
    if results.rows is None:
        sizes = np.minimum(results.tuples, shares * setup.cost.size.of(results.tuples))
    else:
        sizes = np.array(list(map(len, results.rows)))
    if wlq is not None:
        for time, pane, tuples, size, counter, kept, share in zip(
            results.time.tolist(),
            results.pane.tolist(),
            results.tuples.tolist(),
            sizes.tolist(),
            results.counter.tolist(),
            rows,
            shares.tolist(),
            strict=True,
        ):
            wlq.arrive(time, pane, WindowResult(tuples, size, kept, share), counter)
        wlq.until(now)
    return float(sizes.sum())


def _latency(results: PartitionResults, stream: SimulatedStream) -> float:
    """Return the mean seconds from a pane's first tuple to each of its results; panes without tuples do not count."""
    seconds = results.time - stream.begun[results.pane]
    known = seconds[np.isfinite(seconds)]
    return float(known.mean()) if len(known) else np.nan


def _rho(period: SamplingPeriod) -> float:
    found = utilisation(period)
    return np.nan if found is None else found.rho
