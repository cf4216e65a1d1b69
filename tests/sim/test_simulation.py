"""The policies at work on more workers than this machine has: what the papers found, in shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from tests.workloads.streams import united

from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.monitoring import joined, utilisation
from skypane.control.parallelism import Workers
from skypane.control.scheduling import scheduler
from skypane.control.splitting import POLICIES, PaneRoundRobin, PidSplitting, SplittingPolicy
from skypane.control.splitting.splitting_policy import NoState
from skypane.runtime.sim.cost_models import BLOCK_NESTED_LOOPS, CostModel, ResultSize
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSample, SimulationSetup, simulate
from skypane.runtime.sim.window_farm import WindowFarm, WindowResult
from skypane.types import ConfigError
from skypane.windows import Windows
from skypane.workloads import Map2, Poisson
from skypane.workloads.arrivals.sent import SentTuples, until

PANES = Windows.of("100 ms")
OVERLAPPING = Windows.of("1 s", "200 ms")
SLACK = 1_000


def stream(arrivals: Map2 | Poisson, seconds: int, windows: Windows = PANES, seed: int = 0) -> SimulatedStream:
    chunks = (SentTuples(times, np.zeros_like(times)) for times in arrivals.times(np.random.default_rng(seed)))
    event = united(until(chunks, seconds * 1_000_000)).times
    return SimulatedStream.of(windows, event, event, SLACK)


@pytest.fixture(scope="module")
def bursty() -> SimulatedStream:
    """100K tuples/s, index of dispersion 6000 (paper 1, section 4.3.3)."""
    return stream(Map2(100_000, 6_000), 40)


def mean(setup: SimulationSetup, what: str, skip: int = 15) -> float:
    return float(np.nanmean([getattr(sampled, what) for sampled in simulate(setup)][skip:]))


SECOND_A_ROW = CostModel(ResultSize(1, 1), 0, 0, merge_base=0, merge_row=1.0, merge_compare=0)
"""An update takes a second for each row that it reads."""


def plq(made: SimulatedStream, policy: str, workers: int) -> SimulationSetup:
    return SimulationSetup(made, PANES, BLOCK_NESTED_LOOPS, POLICIES[policy], Workers(workers, 1), scheduling=None)


def test_whole_panes_cannot_keep_up_with_bursts_whatever_the_workers(bursty: SimulatedStream):
    """Paper 1, figure 8f: PB_RR stays above 1 up to 17 workers, where TB_RR has time to spare."""
    assert mean(plq(bursty, "PB_RR", 17), "rho_plq") > 1
    assert mean(plq(bursty, "TB_RR", 5), "rho_plq") < 1


@pytest.mark.long
@pytest.mark.parametrize("workers", [7, 12, 17])
def test_the_pid_holds_the_setpoint_with_less_splitting_the_more_workers(bursty: SimulatedStream, workers: int):
    shown = plq(bursty, "AS_PID", workers)
    assert mean(shown, "rho_plq") == pytest.approx(0.9, rel=0.05)
    assert 1 < mean(shown, "sigma") < 2.2


def test_fitted_and_exact_results_agree():
    """Independent points, d = 8: sizes, and with them every metric that is reported of both stages, are the same within 15 %;
    the load of merges, each of which costs as the product of two sizes, within a quarter."""
    overlapping = Windows.of("1 s", "500 ms")
    times = stream(Poisson(5_000), 5, overlapping)
    points = np.random.default_rng(3).random((len(times.arrival), 8))
    cost = replace(BLOCK_NESTED_LOOPS, tuple_compare=0.8e-6, merge_compare=0.2e-6)
    fitted, exact = (
        list(simulate(SimulationSetup(made, overlapping, cost, POLICIES["TB_RR"], Workers(3, 2), "WIN_FB_MERGE")))[1:]
        for made in (times, replace(times, points=points))
    )
    for name in ("rho_plq", "rho_wlq", "sigma", "selected", "share", "latency", "idle_wlq", "windows", "merges"):
        one, other = (np.nanmean([getattr(sampled, name) for sampled in run]) for run in (fitted, exact))
        assert one == pytest.approx(other, rel=0.25 if name.endswith("wlq") else 0.15), name


def test_a_source_that_waits_for_room_hides_an_overload():
    """Why the papers' queues have no bound: what a full queue holds back was not sent, so rho does not see it; it waits."""
    made = stream(Poisson(20_000), 6)
    cost = replace(BLOCK_NESTED_LOOPS, tuple_base=1e-4, tuple_compare=0.0)
    setup = SimulationSetup(made, PANES, cost, POLICIES["TB_RR"], Workers(1, 1), scheduling=None)
    free, full = (list(simulate(replace(setup, room=room)))[1:-1] for room in (None, 100))
    assert np.mean([sampled.rho_plq for sampled in free]) == pytest.approx(2, rel=0.05)
    assert np.mean([sampled.rho_plq for sampled in full]) == pytest.approx(1, rel=0.05)
    assert full[3].backlog == pytest.approx(free[3].backlog, rel=0.01)


def test_what_cannot_be_reached_is_split_evenly(bursty: SimulatedStream):
    assert mean(plq(bursty, "AS_PID", 3), "sigma") == pytest.approx(3, abs=0.05)


@pytest.mark.long
def test_more_splitting_sends_more_to_the_second_stage(bursty: SimulatedStream):
    chosen = [mean(plq(bursty, policy, 7), "selected") for policy in ("PB_RR", "AS_PID", "TB_RR")]
    assert chosen == sorted(chosen)
    assert chosen[2] > 1.5 * chosen[0]


def windows(scheduling: str) -> SimulationSetup:
    """Windows of five panes, each in six partitions, whose merges keep 16 workers busy."""
    overlapping = Windows.of("1 s", "200 ms")
    made = stream(Map2(30_000, 1_000), 40, overlapping)
    cost = CostModel(ResultSize(2.7, 0.751), 1e-6, 45e-9, merge_base=1e-4, merge_row=1e-7, merge_compare=40e-9)
    return SimulationSetup(made, overlapping, cost, POLICIES["TB_RR"], Workers(6, 16), scheduling, sampling=0.5)


@pytest.mark.long
def test_pulling_beats_turns_and_merging_beats_pulling():
    """Paper 1, figure 12, and paper 5, figure 12, in direction: windows in turn overload some workers, updates one after
    the other hold a window up; merges run while windows are busy, and the stage keeps up."""
    rho = {name: mean(windows(name), "rho_wlq", 20) for name in ("WIN_RR", "WIN_FB", "WIN_FB_MERGE")}
    assert rho["WIN_FB_MERGE"] < 0.8 * rho["WIN_FB"] < 0.8 * rho["WIN_RR"]
    waiting = {name: mean(windows(name), "waiting", 20) for name in ("WIN_FB", "WIN_FB_MERGE")}
    assert waiting["WIN_FB_MERGE"] < 0.7 * waiting["WIN_FB"]
    *_, last = simulate(windows("WIN_FB"))
    assert last.merges == 0


def test_every_scheduler_answers_the_same_windows():
    answered = {
        name: sum(one.windows for one in simulate(windows(name))) for name in ("WIN_RR", "WIN_FB", "WIN_FB_MERGE")
    }
    assert max(answered.values()) - min(answered.values()) <= 10, "but for those under way at the end"
    assert answered["WIN_FB"] > 150


@pytest.mark.long
def test_the_fuzzy_controller_follows_a_rate_that_doubles():
    quiet, busy = (stream(Poisson(rate), 30, seed=seed) for seed, rate in enumerate((40_000, 80_000)))
    both = SimulatedStream(
        np.concatenate([quiet.arrival, 30 + busy.arrival]),
        np.concatenate([quiet.pane, quiet.panes + busy.pane]),
        np.ones(len(quiet.arrival) + len(busy.arrival)),
        np.concatenate([quiet.closing, len(quiet.arrival) + busy.closing]),
    )
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(2, 1), every=10)
    cost = CostModel(ResultSize(2.7, 0.751), 1e-6, 45e-9, 1e-5, 1e-8, 0.0)
    setup = SimulationSetup(both, PANES, cost, PidSplitting(), Workers(2, 1), "WIN_FB_MERGE", elastic, sampling=0.25)
    shown = list(simulate(setup))
    early, late = ([one for one in shown if low <= one.time < high] for low, high in ((15, 30), (45, 60)))
    assert np.mean([one.workers.plq for one in late]) > 1.3 * np.mean([one.workers.plq for one in early])
    assert np.mean([one.rho_plq for one in late]) < 1.1
    reasons = [one.because for one in shown if " -> PLQ " in one.because]
    assert any("rule 11" in line or "rule 10" in line or "rule 12" in line for line in reasons)


def test_workers_without_work_go_and_no_window_is_answered_later_for_it():
    """Few windows are open at a time: the rules add window workers that none of them could give a task."""

    def run(idle: int) -> list[SimulationSample]:
        elastic = Elastic(FuzzyPolicy(), max_workers=60, every=4, idle_timeout=idle)
        cost = replace(BLOCK_NESTED_LOOPS, merge_compare=60e-9)
        rows = stream(Poisson(30_000), 20, windows=OVERLAPPING)
        return list(
            simulate(
                SimulationSetup(rows, OVERLAPPING, cost, PidSplitting(), Workers(1, 1), "WIN_FB_MERGE", elastic, 0.25)
            )
        )

    stay, go = run(0), run(2)
    assert sum(one.workers.total for one in go) < 0.9 * sum(one.workers.total for one in stay)
    delays = [np.concatenate([one.delays for one in shown]) for shown in (stay, go)]
    assert (delays[0] > 0).all()
    assert len(delays[1]) == sum(one.windows for one in go) > 20
    assert np.median(delays[1]) < 1.05 * np.median(delays[0])


def test_one_window_worker_by_hand():
    """A pane of two partitions; an update reads 3 rows, then 3 + 2."""
    farm = WindowFarm(scheduler("WIN_FB", Windows(2, 2), 1, first_pane=0), SECOND_A_ROW, 1)
    farm.arrive(1.0, 0, WindowResult(3, 3), 2)
    farm.arrive(2.0, 0, WindowResult(2, 2), 2)
    farm.until(20.0)
    period, answers, merges, updates = farm.measured(20.0)
    assert sum(period.busy) == 3 + 5
    assert [(answer.time, answer.window, answer.size) for answer in answers] == [(9.0, 0, 5.0)]
    assert (merges, updates) == (0, 2)


def test_answers_are_returned_in_the_order_of_windows():
    """The second window is complete after 3 s and waits for the first one, which is after 7 s."""
    farm = WindowFarm(scheduler("WIN_FB", Windows(2, 2), 2, first_pane=0), SECOND_A_ROW, 2)
    farm.arrive(1.0, 0, WindowResult(6, 6), 1)
    farm.arrive(2.0, 1, WindowResult(1, 1), 1)
    farm.until(5.0)
    assert farm.measured(5.0)[1] == []
    farm.until(20.0)
    assert [(answer.time, answer.window) for answer in farm.measured(15.0)[1]] == [(7.0, 0), (7.0, 1)]


def test_tasks_wait_for_a_ready_worker():
    """Two windows share each pane: one task of four runs. A merge of two results leaves one of their two tasks."""
    cost = CostModel(ResultSize(1, 1), 0, 0, merge_base=1.0, merge_row=0.0, merge_compare=0)
    farm = WindowFarm(scheduler("WIN_FB_MERGE", Windows(4, 2), 1, first_pane=0), cost, 4)
    for counter in (2, 2):
        farm.arrive(1.0, 2, WindowResult(1, 1), counter)
    assert farm.pending == 3
    farm.scale(4)
    farm.until(1.5)
    assert farm.pending == 2, "both windows are busy, and each waits for its other result"
    farm.until(5.0)
    assert farm.pending == 0


def test_the_window_level_is_measured_over_the_control_interval_with_the_tasks_that_wait():
    """Both runs are the same until the first decision, after eight sampling intervals."""
    rows = stream(Poisson(30_000), 6, windows=OVERLAPPING)
    cost = replace(BLOCK_NESTED_LOOPS, merge_compare=200e-9)

    def run(how: Literal["sampled", "pending"]) -> list[SimulationSample]:
        elastic = Elastic(FuzzyPolicy(), max_workers=20, every=8, start=Workers(4, 3))
        setup = SimulationSetup(
            rows, OVERLAPPING, cost, PidSplitting(), elastic.start, elastic=elastic, sampling=0.25, wlq_utilisation=how
        )
        return list(simulate(setup))

    sampled, pending = run("sampled"), run("pending")
    known = [at for at, one in enumerate(pending, 1) if not np.isnan(one.rho_wlq)]
    assert known == list(range(8, len(pending) + 1, 8))
    whole = utilisation(joined(tuple(one.wlq for one in sampled[:8] if one.wlq)))
    assert whole is not None
    assert pending[7].rho_wlq > 1.2 * whole.rho, "tasks wait, since three workers do not keep up"


def test_settings_that_cannot_be_simulated_are_refused(bursty: SimulatedStream):
    fixed = SimulationSetup(bursty, PANES, BLOCK_NESTED_LOOPS, PaneRoundRobin(), Workers(1, 1))
    with pytest.raises(ConfigError, match="wlq_utilisation must be 'sampled' or 'pending', got 'mean'"):
        replace(fixed, wlq_utilisation="mean")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="WIN_RR binds windows"):
        replace(fixed, scheduling="WIN_RR", elastic=Elastic(FuzzyPolicy(), max_workers=4))
    with pytest.raises(ConfigError, match="sampling > 0"):
        replace(fixed, sampling=0)


def test_a_policy_without_a_compiled_form_is_refused_by_name(bursty: SimulatedStream):
    class Own(SplittingPolicy[NoState]):
        name = "own"
        State = NoState
        init, observe, decide, send = (getattr(PaneRoundRobin, name) for name in ("init", "observe", "decide", "send"))

    with pytest.raises(ConfigError, match="splitting policy own is not supported"):
        next(simulate(SimulationSetup(bursty, PANES, BLOCK_NESTED_LOOPS, Own(), Workers(1, 1), None)))
