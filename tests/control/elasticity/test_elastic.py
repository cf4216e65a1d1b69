from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.elasticity.forecasting_policy import ModelPolicy
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.interval import StageSamples
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.forecast import RateAhead
from skypane.control.monitoring import SamplingPeriod
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True)
class Wants(ScalingPolicy):
    """Proposes what a test sets, and notes its arguments."""

    workers: Workers
    name = "wants"

    def propose(self, situation: Situation, most: int) -> Decision[Workers]:
        return Decision("workers", self.workers, f"{situation.rho_plq:.2f}, {situation.sigma:.2f}", {"N": float(most)})


def stages(rho: float, *, panes: int = 2, partitions: int = 3) -> StageSamples:
    """One worker per stage, 100 tuples processed in 0.5 s of a second, so many scheduled that rho is as given."""
    plq = SamplingPeriod(1.0, (0.5,), (100,), (round(200 * rho),), panes, partitions)
    return StageSamples(plq, SamplingPeriod(1.0, (0.5,), (10,), (10,)), arrived=100)


Step: TypeAlias = tuple[ElasticState, Decision[Workers]]


def after(elastic: Elastic, shown: list[StageSamples], state: ElasticState | None = None) -> Step:
    state = elastic.init() if state is None else state
    for one in shown:
        state, decision = elastic.decide(elastic.observe(state, one))
    return state, decision


def test_a_policy_is_called_once_in_a_control_interval():
    elastic = Elastic(Wants(Workers(3, 4)), max_workers=10, every=3)
    state, decision = after(elastic, [stages(1.0)] * 2)
    assert decision.value == Workers(1, 1)
    assert "2 of 3" in decision.because
    state, decision = after(elastic, [stages(1.6, panes=1, partitions=3)], state)
    assert decision.value == state.workers == Workers(3, 4)
    assert decision.because == "1.20, 1.80", "the mean of rho, partitions over panes"
    assert decision.figures["N"] == 10
    assert after(elastic, [stages(1.0)], state)[1].because.startswith("1 of 3")


def test_a_control_interval_may_be_a_time():
    elastic = Elastic(Wants(Workers(3, 4)), max_workers=10, every="2.5 seconds")
    state, decision = after(elastic, [stages(1.0)] * 2)
    assert (decision.value, decision.because) == (Workers(1, 1), "2 s of 2.5 s measured")
    state, decision = after(elastic, [stages(1.6)], state)
    assert decision.value == Workers(3, 4)
    assert state.sums.samples == 0
    long = replace(stages(1.0), plq=SamplingPeriod(60.0, (0.5,), (100,), (100,)))
    assert after(elastic, [long])[1].value == Workers(3, 4), "of which one may be longer"
    unknown = StageSamples(None, None)
    assert after(elastic, [unknown] * 9)[1].because == "0 s of 2.5 s measured"


def test_what_comes_is_counted_by_the_second():
    """2,000 tuples in 2 s, of 1 ms each, are the whole time of one worker."""
    elastic = Elastic(ModelPolicy(headroom=0.0), max_workers=60, start=Workers(3, 3), every=1)
    plq = SamplingPeriod(2.0, (2.0,), (2_000,), (2_000,))
    assert after(elastic, [StageSamples(plq, None, arrived=2_000)])[1].value.plq == 1


def test_workers_that_wait_for_a_stated_rate_are_added_and_kept_although_they_have_no_work():
    """100 tuples/s of 5 ms are half a worker's; 1,000 are stated. One worker had work, of two; without a statement none is added."""
    elastic = Elastic(ModelPolicy(headroom=0.0), max_workers=60, start=Workers(2, 1), every=1, idle_timeout=2)
    shown = replace(stages(0.5), wlq=None, used_plq=1)
    assert after(elastic, [shown] * 2)[1].value.plq == 1
    stated = replace(shown, ahead=RateAhead(1_000.0, "x10 at 09:30 UTC, in 60 s"))
    state, decision = after(elastic, [stated] * 9)
    assert decision.value.plq == 5
    assert "x10 at 09:30 UTC" in decision.because
    assert "got no work" not in decision.because
    state, decision = after(elastic, [shown] * 2, elastic.restore(json.loads(json.dumps(elastic.snapshot(state)))))
    assert decision.value.plq == 1, "the statement is no longer there"
    fuzzy = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(2, 1), every=1, idle_timeout=2)
    assert after(fuzzy, [stated] * 9) == after(fuzzy, [shown] * 9), "a policy that does not look ahead ignores it"


def test_a_state_of_a_version_without_stated_rates_is_read():
    elastic = Elastic(ModelPolicy(), max_workers=60)
    before = elastic.snapshot(elastic.init())
    del before["ahead"]
    assert elastic.restore(before) == elastic.init()


def waiting(rows: int, *, catch_up: str | None = "5 seconds", seconds: float = 1.0, workers: int = 2) -> str:
    """Return the rho that a policy hears of, where a tuple costs 5 ms and so many wait."""
    elastic = Elastic(Wants(Workers(1, 1)), max_workers=60, start=Workers(workers, 1), every=1, catch_up=catch_up)
    plq = SamplingPeriod(seconds, (0.25 * seconds,) * 2, (round(50 * seconds),) * 2, (round(50 * seconds),) * 2)
    return after(elastic, [StageSamples(plq, None, arrived=100, backlog=rows)])[1].because


def test_the_line_counts_one_waiting_row_in_the_singular():
    elastic = Elastic(Wants(Workers(1, 1)), max_workers=60, start=Workers(1, 1), every=1, catch_up="1 second")
    slow = SamplingPeriod(1.0, (0.9,), (1,), (1,))
    assert after(elastic, [StageSamples(slow, None, arrived=1, backlog=1)])[1].because.endswith("; 1 row waits")


def test_the_backlog_is_work_too():
    """A thousand tuples are five seconds of work: within five seconds, for two workers, half of their time."""
    assert waiting(1_000, catch_up=None) == "0.25, nan"
    assert waiting(0) == "0.25, nan"
    assert waiting(1_000) == "0.75, nan; 1,000 rows wait"
    assert waiting(1_000, workers=4).startswith("0.50, nan")
    assert waiting(1_000, seconds=10.0).startswith("0.50, nan"), "a control interval of ten seconds is what it has"
    assert waiting(10**9).startswith("10.25, nan"), "the cap of rho is one of this too"


def test_the_backlog_is_worked_off_while_nothing_comes():
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(2, 1), every=1, catch_up="5 seconds")
    state, _ = after(elastic, [stages(0.9)])
    silent = StageSamples(SamplingPeriod(1.0, (1.0, 1.0), (200, 200), (0, 0)), None, backlog=5_000)
    state = elastic.observe(state, silent)
    assert state.sums.mean_rho_plq == 0
    state, decision = elastic.decide(state)
    assert "PLQ slow 1.00 (rho 2.50)" in decision.because
    assert decision.value.plq == 3


def test_where_no_window_was_due_the_pane_level_is_decided_on_alone():
    """Windows of an hour, batches of seconds: most of them answer no window."""
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(4, 5), every=1)
    busy = replace(stages(2.0), wlq=None)
    state, decision = after(elastic, [busy])
    assert state.workers == Workers(6, 5)
    assert decision.because == (
        "PLQ slow 1.00 (rho 2.00), splitting moderate 1.00 (sigma 1.50), WLQ not measured: rule 11 1.00 "
        "-> PLQ 4 -> 6, WLQ 5 -> 5"
    )
    assert "rho wlq" not in decision.figures
    assert after(elastic, [replace(stages(0.2), wlq=None)])[0].workers == Workers(2, 5)


def test_changes_too_small_to_matter_are_not_made():
    elastic = Elastic(Wants(Workers(11, 20)), max_workers=60, start=Workers(10, 10), every=1, hysteresis=0.2)
    _, decision = after(elastic, [stages(1.0)])
    assert decision.value == Workers(10, 20)
    assert decision.because.endswith("; made PLQ 10, WLQ 20")


def test_after_a_change_workers_are_not_taken_away_for_a_while():
    elastic = Elastic(Wants(Workers(1, 5)), max_workers=60, start=Workers(4, 4), every=1, cooldown=2)
    state, first = after(elastic, [stages(1.0)])
    assert first.value == Workers(4, 5), "no calm yet: the one that is added comes, the others stay"
    state, _ = after(elastic, [stages(1.0)] * 2, state)
    assert state.workers == Workers(4, 5)
    state, last = after(elastic, [stages(1.0)], state)
    assert last.value == Workers(1, 5)


def used(elastic: Elastic, shown: list[int], *, rho: float = 0.9) -> Step:
    """Return what becomes of the workers after intervals in which so many pane workers got rows."""
    return after(elastic, [replace(stages(rho), used_plq=workers) for workers in shown])


def test_none_are_added_beside_a_pane_worker_that_got_no_rows_while_the_others_keep_up():
    elastic = Elastic(Wants(Workers(9, 5)), max_workers=60, start=Workers(8, 4), every=1, idle_timeout=3)
    state, decision = used(elastic, [7])
    assert state.workers == Workers(8, 5)
    assert decision.because.endswith("; 1 of 8 PLQ workers got no work; made PLQ 8, WLQ 5")
    assert used(elastic, [8])[0].workers == Workers(9, 5), "all have something to do"
    assert used(elastic, [7], rho=1.2)[0].workers == Workers(9, 5), "those that have do not keep up"
    as_in_the_paper = replace(elastic, idle_timeout=0)
    assert used(as_in_the_paper, [7])[0].workers == Workers(9, 5), "they count as if they worked"
    assert after(elastic, [stages(0.9)])[0].workers == Workers(9, 5), "not known: the source says who gets rows"


def test_none_are_added_beside_a_window_worker_that_got_no_task_however_slow_the_others_are():
    elastic = Elastic(Wants(Workers(1, 9)), max_workers=60, start=Workers(1, 8), every=1, idle_timeout=2)
    idle = replace(stages(1.0), used_wlq=5, wlq=SamplingPeriod(1.0, (2.0,), (1,), (3,)))
    state, decision = after(elastic, [idle])
    assert state.workers == Workers(1, 8)
    assert decision.because.endswith("; 3 of 8 WLQ workers got no work; made PLQ 1, WLQ 8")
    assert after(elastic, [idle, idle])[0].workers == Workers(1, 5)


def test_workers_without_work_are_taken_away_after_a_while():
    elastic = Elastic(Wants(Workers(9, 5)), max_workers=60, start=Workers(8, 4), every=1, idle_timeout=3)
    assert used(elastic, [4, 6])[0].workers.plq == 8
    assert used(elastic, [4, 6, 5])[0].workers.plq == 6, "as many as were needed at once"
    assert used(elastic, [4, 6, 5, 5, 5])[0].workers.plq == 5
    slow, _ = used(replace(elastic, cooldown=4), [4, 6, 5])
    assert slow.workers.plq == 8, "a cooldown holds for them too"
    assert used(replace(elastic, min_plq=7), [4, 6, 5])[0].workers.plq == 7
    moved = elastic.moved(used(elastic, [4, 6])[0], Workers(7, 4))
    assert after(elastic, [replace(stages(0.9), used_plq=5)], moved)[0].workers.plq == 7, "scale() begins anew"


def test_a_dry_run_reports_and_does_nothing():
    elastic = Elastic(Wants(Workers(3, 4)), max_workers=10, every=1, dry_run=True)
    state, decision = after(elastic, [stages(1.0)])
    assert state.workers == decision.value == Workers(1, 1)
    assert decision.because.endswith("dry run: not done")


def test_a_long_silence_leaves_the_least_workers():
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(20, 30), every=1, min_wlq=2)
    nothing = SamplingPeriod(1.0, (0.0,), (0,), (0,))
    state, _ = after(elastic, [StageSamples(nothing, nothing)] * 12)
    assert state.workers == Workers(1, 2)


def test_what_was_never_measured_changes_nothing():
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(20, 30), every=1)
    state, decision = after(elastic, [StageSamples(None, None)] * 3)
    assert state.workers == Workers(20, 30)
    assert decision.because.startswith("rho not measured")
    assert json.dumps(decision.to_json(), allow_nan=False)


def test_the_model_follows_a_rate_that_rises():
    """Each tuple takes 5 ms of the PLQ, and as much of the WLQ."""
    elastic = Elastic(ModelPolicy(headroom=0.1), max_workers=60, every=1)
    state = elastic.init()
    for rate in (100, 400, 800, 1_200, 1_600, 1_600, 1_600, 1_600):
        plq = SamplingPeriod(1.0, (rate * 5e-3,), (rate,), (rate,))
        state, decision = elastic.decide(elastic.observe(state, StageSamples(plq, plq, arrived=rate)))
    assert decision.value.plq == pytest.approx(math.ceil(1_600 * 5e-3 / 0.9), abs=2)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_a_restart_at_any_interval_continues_as_before(shown, every):
    elastic = Elastic(FuzzyPolicy(), max_workers=20, every=every, cooldown=1, idle_timeout=2, catch_up="5 seconds")
    state = restarted = elastic.init()
    for rho, panes, partitions in shown:
        measured = replace(stages(rho, panes=panes, partitions=partitions), used_plq=panes, backlog=100 * partitions)
        state, decision = elastic.decide(elastic.observe(state, measured))
        restarted = elastic.restore(json.loads(json.dumps(elastic.snapshot(restarted))))
        restarted, other = elastic.decide(elastic.observe(restarted, measured))
        assert (restarted, other) == (state, decision)


@given(
    wanted=st.builds(Workers, st.integers(1, 99), st.integers(1, 99)),
    least=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    span=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_no_bound_is_ever_crossed(wanted, least, span):
    (min_plq, min_wlq), (max_plq, max_wlq) = least, (least[0] + span[0], least[1] + span[1])
    bounds = {"min_plq": min_plq, "max_plq": max_plq, "min_wlq": min_wlq, "max_wlq": max_wlq}
    _, decision = after(Elastic(Wants(wanted), max_workers=20, every=1, **bounds), [stages(1.0)])
    assert min_plq <= decision.value.plq <= max_plq
    assert min_wlq <= decision.value.wlq <= max_wlq
    assert decision.value.total <= 20


@pytest.mark.parametrize(("change", "message"), [
    ({"max_workers": 1}, "max_workers must be at least 2"),
    ({"min_plq": 5, "max_plq": 4}, "need 1 <= min_plq <= max_plq <= 10, got 5 and 4"),
    ({"max_wlq": 11}, "min_wlq <= max_wlq <= 10"),
    ({"min_plq": 6, "min_wlq": 5}, "the least of both stages, 6 \\+ 5, exceeds 10"),
    ({"every": 0}, "need every >= 1"),
    ({"every": "-1 second"}, "need every >= 1"),
    ({"catch_up": "0 seconds"}, "catch_up must be longer than 0, got '0 seconds'"),
    ({"catch_up": 5}, "catch_up must be a text such as '10 minutes' or a timedelta, got 5"),
    ({"hysteresis": 1.0}, "0 <= hysteresis < 1"),
    ({"idle_timeout": -1}, "idle_timeout >= 0"),
])  # fmt: skip
def test_invalid_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Elastic(**{"policy": FuzzyPolicy(), "max_workers": 10} | change)


def test_a_snapshot_of_something_else_is_refused():
    elastic = Elastic(FuzzyPolicy(), max_workers=10)
    with pytest.raises(CheckpointError, match=r"ElasticState in the checkpoint: workers\.plq"):
        elastic.restore({**elastic.snapshot(elastic.init()), "workers": {"plq": "three", "wlq": 1}})


def test_a_state_of_version_0_2_is_read():
    elastic = Elastic(FuzzyPolicy(), max_workers=10)
    before = elastic.snapshot(replace(elastic.init(), stable=3))
    before["calm"] = before.pop("stable")
    assert elastic.restore(before).stable == 3
