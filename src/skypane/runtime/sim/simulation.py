"""Both stages in virtual time, monitored each T, split and scaled by the laws that the engine uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.interval import Stages
from skypane.control.monitoring import Period, utilisation
from skypane.control.scheduling import scheduler
from skypane.control.splitting import Splitting
from skypane.control.splitting.adaptive import ThresholdSplitting
from skypane.control.workers import Workers
from skypane.runtime.sim.costs import CostModel
from skypane.runtime.sim.farm import PaneFarm, Results
from skypane.runtime.sim.stream import Stream
from skypane.runtime.sim.window_farm import Answer, Result, WindowFarm
from skypane.types import ConfigError
from skypane.windows import Windows


@dataclass(frozen=True, eq=False)
class Setup:
    """What is simulated.

    stream, windows   tuples, and the windows that they were made ready for; where they have points, results are exact
    cost              what work takes
    splitting         the law of the first stage
    scheduling        WIN_RR, WIN_FB or WIN_FB_MERGE; None: the first stage alone
    workers           of both stages, at first
    elastic           the law that changes them; None: they stay
    sampling          T: seconds between two measurements
    room              tuples for which a queue of the first stage has room, and the source waits while there is none; None: any
    drain             whether what waits when all tuples have come is worked off: one more sample, of whatever length
    """

    stream: Stream
    windows: Windows
    cost: CostModel
    splitting: Splitting
    workers: Workers
    scheduling: str | None = "WIN_FB_MERGE"
    elastic: Elastic | None = None
    sampling: float = 1.0
    drain: bool = False
    room: int | None = None

    def __post_init__(self) -> None:
        if not self.sampling > 0:
            raise ConfigError(f"need sampling > 0 seconds, got {self.sampling}")
        if self.elastic is not None and self.scheduling == "WIN_RR":
            raise ConfigError("WIN_RR binds windows to workers: it cannot be elastic; take WIN_FB or WIN_FB_MERGE")

    @property
    def most(self) -> Workers:
        """The most workers that each stage can come to have."""
        return self.workers if self.elastic is None else Workers(self.elastic.most, self.elastic.most)


class Sampled(NamedTuple):
    """What one sampling interval showed.

    time               its end
    workers            during it
    rho_plq, rho_wlq   utilisation factors, NaN where unknown
    sigma              splitting factor, NaN if no pane was closed
    theta              splitting threshold, infinite where panes are not split
    arrived            tuples that came
    backlog, waiting   tuples that have come and are not served in the first stage, results that wait in the second
    idle_wlq           share of the second stage's time without work
    windows, merges, updates   windows answered; tasks done
    delays             seconds from the closing of a window's last pane to its answer, one for each that was answered
    selected           tuples that the first stage passed on, per closed pane; NaN if none was closed
    share              of the tuples of these results; NaN if none went out
    latency            seconds from a pane's first tuple until its results go out, mean over results; NaN if none did
    because            what the elastic law decided, and why
    plq, wlq           what was measured of both stages; None: there is no second stage
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
    plq: Period
    wlq: Period | None


def simulate(setup: Setup) -> Iterator[Sampled]:
    """Yield what each sampling interval showed, until all tuples have come, and then what was left, if that is asked for."""
    law, elastic = setup.splitting, setup.elastic
    state: Any = law.init()
    scaling = None if elastic is None else elastic.init()
    workers = setup.workers if scaling is None else scaling.workers
    cost = setup.cost.tuples(1 << 16) if setup.stream.points is None else setup.cost.compared(1 << 16)
    plq = PaneFarm(setup.stream, cost, workers.plq, setup.most.plq, setup.room)
    wlq = None if setup.scheduling is None else _window_farm(setup, workers)
    now = 0.0
    while not plq.ended:
        now += setup.sampling
        interval = plq.advance(now, law, state)
        theta = law.theta(state) if isinstance(law, ThresholdSplitting) else np.inf
        state = law.observe(state, interval.sample)
        selected = _pass_on(interval.results, wlq, setup, now)
        period, answers, merges, updates = (None, [], 0, 0) if wlq is None else wlq.measured(setup.sampling)
        because = ""
        during = workers
        if elastic is not None and scaling is not None:
            scaling = elastic.observe(scaling, _shown(interval.period, period, plq.backlog))
            scaling, decision = elastic.decide(scaling)
            workers, because = decision.value, decision.because
            plq.scale(workers.plq)
            if wlq is not None:
                wlq.scale(workers.wlq)
        sampled = Sampled(
            time=now,
            workers=during,
            rho_plq=_rho(interval.period),
            rho_wlq=np.nan if period is None else _rho(period),
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
        yield _rest(sampled, plq.finish(law, state), wlq, setup)


def _shown(plq: Period, wlq: Period | None, backlog: int) -> Stages:
    used = None if wlq is None else wlq.needed()
    return Stages(plq, wlq, sum(plq.scheduled), backlog, used_plq=plq.needed(), used_wlq=used)


def _rest(last: Sampled, results: Results, wlq: WindowFarm | None, setup: Setup) -> Sampled:
    """Return the sample of what was left: its time is that of the last answer."""
    _pass_on(results, wlq, setup, np.inf)
    ended = [float(results.time.max())] if len(results.time) else []
    answers = [] if wlq is None else wlq.measured(setup.sampling)[1]
    end = max([last.time, *ended, *(answer.time for answer in answers)])
    delays = _delays(answers, setup)
    return last._replace(
        time=end, windows=len(answers), delays=delays, arrived=0, backlog=0, because="the stream has ended"
    )


def _delays(answers: Sequence[Answer], setup: Setup) -> tuple[float, ...]:
    closed = setup.stream.closed
    return tuple(
        float(answer.time - closed[min(setup.windows.panes_of(answer.window)[-1], len(closed) - 1)])
        for answer in answers
    )


def _window_farm(setup: Setup, workers: Workers) -> WindowFarm:
    wlq = scheduler(setup.scheduling or "", setup.windows, workers.wlq, first_pane=0)
    return WindowFarm(wlq, setup.cost, setup.most.wlq, setup.stream.points)


def _pass_on(results: Results, wlq: WindowFarm | None, setup: Setup, now: float) -> float:
    """Hand partition results to the second stage, and let it go on; return how many tuples they hold."""
    rows = results.rows or (None,) * len(results.time)
    sizes = setup.cost.size.of(results.tuples) if results.rows is None else np.array(list(map(len, results.rows)))
    if wlq is not None:
        for time, pane, tuples, size, counter, kept in zip(
            results.time.tolist(),
            results.pane.tolist(),
            results.tuples.tolist(),
            sizes.tolist(),
            results.counter.tolist(),
            rows,
            strict=True,
        ):
            wlq.arrive(time, pane, Result(tuples, size, kept), counter)
        wlq.until(now)
    return float(sizes.sum())


def _latency(results: Results, stream: Stream) -> float:
    """Return the mean of a pane's seconds up to each of its results; panes without a tuple have none."""
    seconds = results.time - stream.begun[results.pane]
    known = seconds[np.isfinite(seconds)]
    return float(known.mean()) if len(known) else np.nan


def _rho(period: Period) -> float:
    found = utilisation(period)
    return np.nan if found is None else found.rho
