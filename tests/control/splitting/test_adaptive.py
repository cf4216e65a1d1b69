from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.splitting.loop import run
from tests.parameters import examples

from skypane.control.monitoring import SamplingPeriod
from skypane.control.splitting import AdaptiveSplitting, PidSplitting, Share, SplittingSample, UpcomingBatch
from skypane.control.splitting.adaptive import theta_base
from skypane.control.splitting.pid import FALLBACK, Gains, Pid
from skypane.types import CheckpointError, ConfigError


def bursty(seed: int, intervals: int, panes: int = 10, rows: int = 1_000) -> list[list[int]]:
    """Return panes of lognormal sizes, a standard deviation of 95 % of the mean."""
    rng = np.random.default_rng(seed)
    return [[1 + int(size) for size in rng.lognormal(np.log(rows), 0.8, panes)] for _ in range(intervals)]


def load(sizes: list[list[int]], workers: int, utilisation: float) -> float:
    """Return the seconds per tuple with which even splitting comes to this utilisation."""
    return utilisation * workers * len(sizes) / sum(map(sum, sizes))


def test_the_base_threshold_by_hand():
    """Partitions of 2, 4, 4, 4, 5, 5, 7, 9 tuples: mean 5, standard deviation 2."""
    policy = AdaptiveSplitting()
    state = policy.observe(policy.init(), SplittingSample(None, (2, 4, 4, 4, 5, 5, 7, 9)))
    assert policy.theta(state) == pytest.approx(7)


def test_only_recent_partitions_count():
    policy = AdaptiveSplitting(recent=3)
    state = policy.observe(policy.init(), SplittingSample(None, (1_000, 10, 10, 0)))
    assert policy.theta(policy.observe(state, SplittingSample(None, (10,)))) == 10, "the empty one is none"


def test_before_anything_is_closed_nothing_is_split():
    policy = AdaptiveSplitting()
    _, decision = policy.decide(policy.init(), UpcomingBatch({1: 50, 2: 1_000_000}, workers=4))
    assert decision.value.shares == {1: (Share(1, 50),), 2: (Share(2, 1_000_000),)}
    assert decision.figures["sigma"] == 1


def test_a_pane_over_the_threshold_is_split_by_hand():
    """Theta 100: pane 1 fills worker 1 with 100 and gives 20 to the LLW, the next; pane 2 starts on the LLW of (0, 100, 20)."""
    policy = AdaptiveSplitting()
    state = policy.observe(policy.init(), SplittingSample(None, (100, 100)))
    state, decision = policy.decide(state, UpcomingBatch({2: 30, 1: 120}, workers=3))
    assert decision.value.shares == {1: (Share(1, 100), Share(2, 20)), 2: (Share(0, 30),)}
    assert (decision.figures["theta"], decision.figures["alpha"]) == (100, 1)
    assert "theta 100" in decision.because
    state, decision = policy.decide(state, UpcomingBatch({2: 80}, workers=3))
    assert decision.value.shares == {2: (Share(0, 70), Share(2, 10))}, "the owner goes on up to the threshold"


def test_closed_panes_are_forgotten():
    policy = AdaptiveSplitting()
    state, _ = policy.decide(policy.init(), UpcomingBatch({1: 5, 2: 5}, workers=2))
    state, _ = policy.decide(state, UpcomingBatch({3: 5}, workers=2, open_from=2))
    assert sorted(state.panes) == [2, 3]


@given(
    rows=st.dictionaries(st.integers(-3, 3), st.integers(0, 30)),
    loads=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 12), max_size=4),
)
def test_batches_of_one_tuple_go_the_way_of_tuples(rows, loads, sizes):
    policy = AdaptiveSplitting()
    one = many = policy.observe(policy.init(), SplittingSample(None, tuple(sizes)))
    waiting = list(loads)
    for pane in sorted(rows):
        for _ in range(rows[pane]):
            many, decision = policy.decide(many, UpcomingBatch({pane: 1}, len(waiting), tuple(waiting)))
            one, worker = policy.send(one, pane, waiting)
            assert decision.value.owners(pane) == (worker,)
            assert one == many
            waiting[worker] += 1


@given(
    rows=st.dictionaries(st.integers(-3, 3), st.integers(1, 50)),
    loads=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    theta=st.integers(1, 20),
)
def test_every_row_of_a_batch_is_routed_once(rows, loads, theta):
    policy = AdaptiveSplitting()
    state = policy.observe(policy.init(), SplittingSample(None, (theta,)))
    _, decision = policy.decide(state, UpcomingBatch(rows, len(loads), tuple(loads)))
    assert {pane: sum(share.rows for share in shares) for pane, shares in decision.value.shares.items()} == rows
    assert sum(decision.value.rows_by_worker(rows)) == sum(rows.values())


@pytest.mark.long
@settings(max_examples=examples(0.4))
@given(seed=st.integers(0, 99), workers=st.integers(2, 8), overload=st.floats(1.2, 4.0))
def test_what_cannot_keep_up_is_split_evenly(seed, workers, overload):
    """Proposition 1 of paper 5: if rho cannot come to the setpoint, sigma goes to n."""
    sizes = bursty(seed, 110)
    shown = list(run(PidSplitting(), sizes, workers, load(sizes, workers, overload)))
    assert np.mean([interval.sigma for interval in shown[-20:]]) > 0.98 * workers


@pytest.mark.long
@pytest.mark.parametrize("gains", [None, FALLBACK], ids=["tuned by the relay", "fallback gains"])
@pytest.mark.parametrize(("workers", "utilisation"), [(12, 0.5), (12, 0.7), (12, 0.8)])
def test_rho_converges_to_its_setpoint(gains: Gains | None, workers: int, utilisation: float):
    sizes = bursty(0, 220)
    shown = list(run(PidSplitting(gains=gains), sizes, workers, load(sizes, workers, utilisation)))[100:]
    assert np.mean([interval.rho for interval in shown]) == pytest.approx(0.9, rel=0.03)
    assert 1 < np.mean([interval.sigma for interval in shown]) < workers / 2


def test_gains_that_were_found_among_bursts_are_no_softer_than_the_fallback():
    """The relay takes noise for the loop's swing: of these loops, which are alike except for their bursts, it finds most steeper."""
    policy, softer = PidSplitting(), 0
    for seed in range(6):
        *_, last = run(policy, bursty(seed, 60), 12, load(bursty(seed, 60), 12, 0.7))
        assert last.state.gains.kp >= FALLBACK.kp
        softer += last.state.gains == FALLBACK
    assert softer > 0
    found = policy.relay.rule.gains(10.0, 4.0)
    assert policy._firmer(found) == found
    assert policy._firmer(None) == FALLBACK


def test_after_the_relay_the_loop_starts_from_its_last_error_without_a_debt():
    sizes = bursty(0, 60)
    policy = PidSplitting()
    first = next(each for each in run(policy, sizes, 12, load(sizes, 12, 0.7)) if each.state.relay is None)
    assert (first.state.pid.total, first.state.pid.last) == (0.0, policy.pid.error(first.rho))
    assert first.state.pid.last != 0


def test_the_setpoint_is_reached_where_the_statistical_threshold_alone_fails():
    """A load of 0.8 on twelve workers: AS splits by the sizes alone, AS_PID just enough for the setpoint."""
    sizes = bursty(3, 220)
    cost = load(sizes, 12, 0.55)
    by_sizes, by_pid = (
        [
            np.mean(column[100:])
            for column in zip(*((i.rho, i.sigma) for i in run(policy, sizes, 12, cost)), strict=True)
        ]
        for policy in (AdaptiveSplitting(), PidSplitting())
    )
    assert by_sizes[0] < 0.7, "unnecessarily fast"
    assert by_pid[0] == pytest.approx(0.9, rel=0.05)
    assert by_pid[1] < by_sizes[1], "with less splitting"


def test_a_burst_that_ends_leaves_no_debt():
    """Overloaded for 100 intervals, then idle: alpha comes back in as many steps as it has to go, not after 100."""
    calm, storm = bursty(1, 100), bursty(2, 100)
    policy = PidSplitting(gains=FALLBACK)
    shown = list(run(policy, [*storm, *[[size // 20 for size in panes] for panes in calm]], 8, load(storm, 8, 2.0)))
    assert shown[99].state.pid.alpha == policy.pid.lowest
    assert shown[120].sigma == 1


def test_intervals_without_information_move_nothing():
    policy = PidSplitting(gains=FALLBACK)
    state = policy.init()
    for period in (None, SamplingPeriod(1.0, (0.0,), (0,), (0,)), SamplingPeriod(1.0, (0.0,), (0,), (7,))):
        assert policy.observe(state, SplittingSample(period)) == state


def test_one_pane_that_holds_everything_is_split_over_all():
    sizes = [[10_000]] * 80
    *_, last = run(PidSplitting(), sizes, 6, load(sizes, 6, 0.95))
    assert last.sigma == 6


@given(seed=st.integers(0, 99))
@settings(max_examples=examples(0.2))
def test_a_restart_at_every_interval_changes_nothing(seed):
    class Restarted(PidSplitting):
        def observe(self, state, measured):
            return self.restore(json.loads(json.dumps(self.snapshot(super().observe(state, measured)))))

    sizes = bursty(seed, 60)
    cost = load(sizes, 4, 0.8)
    assert list(run(Restarted(), sizes, 4, cost)) == list(run(PidSplitting(), sizes, 4, cost))


@pytest.mark.parametrize(("change", "field"), [
    ({"more": 1}, "more"),
    ({"sizes": ["7"]}, "sizes.0"),
    ({"panes": {"1": {"worker": 0, "tuples": 2.5, "sizes": {}}}}, "panes.1.tuples"),
    ({"pid": {"alpha": None, "total": 0.0, "last": None}}, "pid.alpha"),
])  # fmt: skip
def test_a_snapshot_that_is_none_is_refused_by_field(change, field):
    policy = PidSplitting()
    snapshot = {**policy.snapshot(policy.init()), **change}
    with pytest.raises(CheckpointError, match=rf"PidSplittingState in the checkpoint: {field}: "):
        policy.restore(snapshot)


def test_a_threshold_of_no_partitions_is_none():
    assert math.isinf(theta_base(()))
    with pytest.raises(ConfigError, match="recent must be at least 1 partition, got 0"):
        AdaptiveSplitting(recent=0)


def test_policies_are_values():
    assert PidSplitting() == replace(PidSplitting())
    assert PidSplitting(pid=Pid(setpoint=0.8)) != PidSplitting()
