from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.elasticity.explaining import FuzzyPolicy
from skypane.control.elasticity.interval import Stages
from skypane.control.elasticity.model import ModelPolicy
from skypane.control.elasticity.situation import Policy, Proposal, Situation
from skypane.control.law import Decision
from skypane.control.monitoring import Period
from skypane.control.workers import Workers
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True)
class Wants(Policy):
    """Proposes what it is told to, and notes what it was asked."""

    workers: Workers
    name = "wants"

    def propose(self, situation: Situation, most: int) -> Proposal:
        return Proposal(self.workers, f"{situation.rho_plq:.2f}, {situation.sigma:.2f}", {"N": float(most)})


def stages(rho: float, *, panes: int = 2, partitions: int = 3) -> Stages:
    """One worker per stage, 100 tuples processed in 0.5 s of a second, so many scheduled that rho is as given."""
    plq = Period(1.0, (0.5,), (100,), (round(200 * rho),), panes, partitions)
    return Stages(plq, Period(1.0, (0.5,), (10,), (10,)), arrived=100)


def after(
    law: Elastic, shown: list[Stages], state: ElasticState | None = None
) -> tuple[ElasticState, Decision[Workers]]:
    state = law.init() if state is None else state
    for one in shown:
        state, decision = law.decide(law.observe(state, one))
    return state, decision


def test_a_policy_is_asked_once_in_a_control_interval():
    law = Elastic(Wants(Workers(3, 4)), most=10, every=3)
    state, decision = after(law, [stages(1.0)] * 2)
    assert decision.value == Workers(1, 1)
    assert "2 of 3" in decision.because
    state, decision = after(law, [stages(1.6, panes=1, partitions=3)], state)
    assert decision.value == state.workers == Workers(3, 4)
    assert decision.because == "1.20, 1.80", "the mean of rho, partitions over panes"
    assert decision.figures["N"] == 10
    assert after(law, [stages(1.0)], state)[1].because.startswith("1 of 3")


def test_changes_too_small_to_matter_are_not_made():
    law = Elastic(Wants(Workers(11, 20)), most=60, start=Workers(10, 10), every=1, hysteresis=0.2)
    _, decision = after(law, [stages(1.0)])
    assert decision.value == Workers(10, 20)
    assert decision.because.endswith("; made PLQ 10, WLQ 20")


def test_after_a_change_workers_are_not_taken_away_for_a_while():
    law = Elastic(Wants(Workers(1, 5)), most=60, start=Workers(4, 4), every=1, cooldown=2)
    state, first = after(law, [stages(1.0)])
    assert first.value == Workers(4, 5), "no calm yet: the one that is added comes, the others stay"
    state, _ = after(law, [stages(1.0)] * 2, state)
    assert state.workers == Workers(4, 5)
    state, last = after(law, [stages(1.0)], state)
    assert last.value == Workers(1, 5)


def used(law: Elastic, shown: list[int], *, rho: float = 0.9) -> tuple[ElasticState, Decision[Workers]]:
    """Return what becomes of the law after intervals in which so many pane workers got rows."""
    return after(law, [replace(stages(rho), used_plq=workers) for workers in shown])


def test_none_are_added_beside_a_pane_worker_that_got_no_rows_while_the_others_keep_up():
    law = Elastic(Wants(Workers(9, 5)), most=60, start=Workers(8, 4), every=1, idle=3)
    state, decision = used(law, [7])
    assert state.workers == Workers(8, 5)
    assert decision.because.endswith("; 1 of 8 PLQ workers got no work; made PLQ 8, WLQ 5")
    assert used(law, [8])[0].workers == Workers(9, 5), "all have something to do"
    assert used(law, [7], rho=1.2)[0].workers == Workers(9, 5), "those that have do not keep up"
    assert used(replace(law, idle=0), [7])[0].workers == Workers(9, 5), "in the paper they count as if they worked"
    assert after(law, [stages(0.9)])[0].workers == Workers(9, 5), "not known: the source says who gets rows"


def test_none_are_added_beside_a_window_worker_that_got_no_task_however_slow_the_others_are():
    law = Elastic(Wants(Workers(1, 9)), most=60, start=Workers(1, 8), every=1, idle=2)
    idle = replace(stages(1.0), used_wlq=5, wlq=Period(1.0, (2.0,), (1,), (3,)))
    state, decision = after(law, [idle])
    assert state.workers == Workers(1, 8)
    assert decision.because.endswith("; 3 of 8 WLQ workers got no work; made PLQ 1, WLQ 8")
    assert after(law, [idle, idle])[0].workers == Workers(1, 5)


def test_workers_without_work_are_taken_away_after_a_while():
    law = Elastic(Wants(Workers(9, 5)), most=60, start=Workers(8, 4), every=1, idle=3)
    assert used(law, [4, 6])[0].workers.plq == 8
    assert used(law, [4, 6, 5])[0].workers.plq == 6, "as many as were needed at once"
    assert used(law, [4, 6, 5, 5, 5])[0].workers.plq == 5
    slow, _ = used(replace(law, cooldown=4), [4, 6, 5])
    assert slow.workers.plq == 8, "a cooldown holds for them too"
    assert used(replace(law, least_plq=7), [4, 6, 5])[0].workers.plq == 7
    moved = law.moved(used(law, [4, 6])[0], Workers(7, 4))
    assert after(law, [replace(stages(0.9), used_plq=5)], moved)[0].workers.plq == 7, "scale() begins anew"


def test_a_dry_run_tells_and_does_nothing():
    law = Elastic(Wants(Workers(3, 4)), most=10, every=1, dry_run=True)
    state, decision = after(law, [stages(1.0)])
    assert state.workers == decision.value == Workers(1, 1)
    assert decision.because.endswith("dry run: not done")


def test_a_long_silence_leaves_the_least_workers():
    law = Elastic(FuzzyPolicy(), most=60, start=Workers(20, 30), every=1, least_wlq=2)
    nothing = Period(1.0, (0.0,), (0,), (0,))
    state, _ = after(law, [Stages(nothing, nothing)] * 12)
    assert state.workers == Workers(1, 2)


def test_what_was_never_measured_changes_nothing():
    law = Elastic(FuzzyPolicy(), most=60, start=Workers(20, 30), every=1)
    state, decision = after(law, [Stages(None, None)] * 3)
    assert state.workers == Workers(20, 30)
    assert decision.because.startswith("rho not measured")
    assert json.dumps(decision.to_json(), allow_nan=False)


def test_the_model_follows_a_rate_that_rises():
    """Each tuple takes 5 ms of the PLQ, and as much of the WLQ."""
    law = Elastic(ModelPolicy(headroom=0.1), most=60, every=1)
    state = law.init()
    for rate in (100, 400, 800, 1_200, 1_600, 1_600, 1_600, 1_600):
        plq = Period(1.0, (rate * 5e-3,), (rate,), (rate,))
        state, decision = law.decide(law.observe(state, Stages(plq, plq, arrived=rate)))
    assert decision.value.plq == pytest.approx(math.ceil(1_600 * 5e-3 / 0.9), abs=2)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_a_restart_at_any_interval_goes_on_as_before(shown, every):
    law = Elastic(FuzzyPolicy(), most=20, every=every, cooldown=1, idle=2)
    state = restarted = law.init()
    for rho, panes, partitions in shown:
        measured = replace(stages(rho, panes=panes, partitions=partitions), used_plq=panes)
        state, decision = law.decide(law.observe(state, measured))
        restarted = law.restore(json.loads(json.dumps(law.snapshot(restarted))))
        restarted, other = law.decide(law.observe(restarted, measured))
        assert (restarted, other) == (state, decision)


@given(
    wanted=st.builds(Workers, st.integers(1, 99), st.integers(1, 99)),
    least=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    span=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_no_bound_is_ever_crossed(wanted, least, span):
    law = Elastic(
        Wants(wanted), most=20, every=1,
        least_plq=least[0], most_plq=least[0] + span[0], least_wlq=least[1], most_wlq=least[1] + span[1],
    )  # fmt: skip
    _, decision = after(law, [stages(1.0)])
    assert least[0] <= decision.value.plq <= least[0] + span[0]
    assert least[1] <= decision.value.wlq <= least[1] + span[1]
    assert decision.value.total <= 20


@pytest.mark.parametrize(("change", "message"), [
    ({"most": 1}, "max_workers must be at least 2"),
    ({"least_plq": 5, "most_plq": 4}, "need 1 <= least_plq <= most_plq <= 10, got 5 and 4"),
    ({"most_wlq": 11}, "least_wlq <= most_wlq <= 10"),
    ({"least_plq": 6, "least_wlq": 5}, "the least of both stages, 6 \\+ 5, exceeds 10"),
    ({"every": 0}, "need every >= 1"),
    ({"hysteresis": 1.0}, "0 <= hysteresis < 1"),
    ({"idle": -1}, "idle >= 0"),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Elastic(**{"policy": FuzzyPolicy(), "most": 10} | change)


def test_a_snapshot_of_something_else_is_refused():
    law = Elastic(FuzzyPolicy(), most=10)
    with pytest.raises(CheckpointError, match=r"ElasticState in the checkpoint: workers\.plq"):
        law.restore({**law.snapshot(law.init()), "workers": {"plq": "three", "wlq": 1}})
