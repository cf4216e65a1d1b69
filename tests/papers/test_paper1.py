"""Paper 1: what its figures rest on, against definitions and cases by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skypane.control.parallelism import Workers
from skypane.control.scheduling import scheduler
from skypane.control.splitting import PaneRoundRobin
from skypane.runtime.sim.cost_models import BLOCK_NESTED_LOOPS, CostModel, ResultSize
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSetup, simulate
from skypane.runtime.sim.window_farm import WindowFarm, WindowResult
from skypane.windows import Windows
from skypane.workloads import HeldBack
from skypane.workloads.content.points import anticorrelated, correlated
from skypane.workloads.estimators import autocorrelation, dispersion, gaps
from skypane_papers import registry
from skypane_papers.paper1 import figure_5, figure_15, figure_16
from skypane_papers.paper1.figure_8 import PANES, changing
from skypane_papers.rows import at
from skypane_papers.streams import as_published, event_times, stream

OVERLAPPING = Windows.of("1 s", "200 ms")


def lag_of_fit(factor: float) -> float:
    """The lag-1 autocorrelation of gaps of F and 1/F times the mean, as long as states last (Map2's formulas)."""
    share = factor / (1 + factor)  # of the tuples in bursts, so that the mean is kept
    variance = share * (1 - share) * (factor - 1 / factor) ** 2
    return variance / (1 + 2 * variance)


def test_the_published_shape_is_the_first_doubling_with_an_autocorrelation_of_two_fifths():
    assert lag_of_fit(2) < 0.4 <= lag_of_fit(4)
    made = as_published(1_000, 100)
    assert made.ratio == 4**2
    assert made.burst_share == pytest.approx(4 / 5)


def test_its_gaps_have_that_autocorrelation_and_the_requested_index():
    times = event_times(1_000, 500, 600, np.random.default_rng(1), as_published)
    assert autocorrelation(gaps(times), 1)[0] == pytest.approx(lag_of_fit(4), abs=0.03)
    assert dispersion(times).value == pytest.approx(500, rel=0.3)


def test_sizes_of_panes_deviate_by_less_than_the_index_allows():
    """Counts have at most I times their mean as variance, so at I = 6K panes of 10K tuples deviate by 77 % at most."""
    rows = figure_5.measure(quick=True)
    high = rows[rows["stream"] == "panes, high"].iloc[0]
    assert high["limit"] == pytest.approx(math.sqrt(0.6), rel=0.1)
    assert 0.5 < high["deviation"] < 1
    verdicts = {claim.says: claim.verdict(claim.judge(rows)) for claim in figure_5.FIGURE.claims}
    assert verdicts["4.3.3: with high bursts the size of panes deviates by 123.0%"].startswith("the paper contradicts")


def test_work_changes_by_the_pane_of_a_tuple_and_sizes_only_where_requested():
    made = stream(1_000, 1, PANES, 3)
    changed = changing(made, (0.5, 2.0))
    assert changed.share is None
    assert {(pane // 10 % 2, work) for pane, work in zip(made.pane.tolist(), changed.work.tolist(), strict=True)} == {
        (0, 0.5),
        (1, 2.0),
    }
    sized = changing(made, (0.5, 2.0), sizes=True)
    assert sized.share is not None
    assert sized.share[made.pane].tolist() == sized.work.tolist()


def test_a_union_has_the_share_of_its_tuples():
    cost = CostModel(ResultSize(2, 0.5), 0, 0, merge_base=1.0, merge_row=0, merge_compare=0)
    farm = WindowFarm(scheduler("WIN_FB", Windows.of("2 s", "1 s"), 1, first_pane=0), cost, 1)
    farm.arrive(0.0, 0, WindowResult(100, 10, share=0.5), 1)
    farm.arrive(0.0, 1, WindowResult(300, 69, share=2.0), 1)
    farm.until(np.inf)
    answers = {answer.window: answer.size for answer in farm.measured(1.0)[1]}
    assert answers[0] == pytest.approx((100 * 0.5 + 300 * 2.0) / 400 * 2 * 400**0.5)


def test_a_share_of_one_changes_nothing():
    made = stream(2_000, 1, OVERLAPPING, 4)
    usual, shared = (
        [(sampled.time, sampled.delays) for sampled in simulate(_setup(some, "WIN_FB", 2))]
        for some in (made, replace(made, share=np.ones(made.panes)))
    )
    assert usual == shared
    assert any(delays for _, delays in usual)


def _setup(made: SimulatedStream, scheduling: str, m: int) -> SimulationSetup:
    cost = BLOCK_NESTED_LOOPS.comparing(8e-6)
    return SimulationSetup(made, OVERLAPPING, cost, PaneRoundRobin(), Workers(8, m), scheduling)


@pytest.mark.parametrize(("workers", "apart"), [(10, True), (7, False)])
def test_windows_bound_to_workers_meet_their_kind_if_the_workers_divide_the_changes(workers: int, apart: bool):
    """Exact skylines of points whose correlation changes each second, so that windows are alike each ten windows."""
    rng = np.random.default_rng(3)
    event = np.sort(rng.integers(0, 20_000_000, 20_000))
    odd = (event // 1_000_000) % 2 == 1
    points = np.where(odd[:, None], anticorrelated(len(event), 6, rng), correlated(len(event), 6, rng))
    made = SimulatedStream.of(OVERLAPPING, event, event, 1_000, np.ascontiguousarray(points))
    last = {}
    for scheduling in ("WIN_RR", "WIN_FB"):
        busy = np.array(
            [sampled.wlq.busy for sampled in simulate(_setup(made, scheduling, workers)) if sampled.wlq]
        ).sum(axis=0)
        last[scheduling] = busy.max() / busy.mean()
    assert (last["WIN_RR"] > 1.2 * last["WIN_FB"]) == apart, last


def test_a_tie_is_not_the_most():
    rows = pd.DataFrame({"query": "skyline", "game": ["G5", "G7", "G8"], "n": [1, 2, 1], "m": [3, 3, 3]})
    assert not figure_15._fast(rows).holds
    assert figure_15._fast(rows.assign(m=[2, 3, 3])).holds


def test_held_back_tuples_arrive_in_bursts_with_the_means_of_the_table():
    rows = figure_16.summary(figure_16.measure(quick=True))
    held, drawn = (at(rows, "correlation", stream=name) for name in (figure_16.HOLDING, figure_16.DRAWN))
    assert held > 0.3 > drawn
    delays = HeldBack(f"{figure_16.EVERY} seconds", f"{figure_16.HOLD} seconds")
    assert delays.mean + figure_16.USUAL == pytest.approx(figure_16.GAME.mean_delay)


def test_figures_5_and_16_and_table_2_have_commands():
    assert {"paper1-figure-5", "paper1-figure-16", "paper1-table-2"} <= set(registry.names())
