from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting import (
    POLICIES,
    PaneRoundRobin,
    Routing,
    Share,
    TupleRoundRobin,
    UpcomingBatch,
    splitting,
)
from skypane.control.splitting.splitting_policy import NoState
from skypane.policy import Decision
from skypane.types import ConfigError


@given(st.integers(1, 20), st.integers(-1_000, 1_000))
def test_panes_go_round_robin_before_the_epoch_too(workers: int, first: int):
    policy = PaneRoundRobin()
    _, decision = policy.decide(policy.init(), UpcomingBatch({}, workers))
    owners = [decision.value.owner(pane) for pane in range(first, first + workers)]
    assert sorted(owners) == list(range(workers)), "as many panes as workers: each gets one"
    assert decision.value.owner(first) == decision.value.owner(first + workers)
    assert decision.value.owners(first) == (first % workers,)


def test_rows_go_to_all_workers_in_turn_from_batch_to_batch():
    policy = TupleRoundRobin()
    state, first = policy.decide(policy.init(), UpcomingBatch({7: 5}, 3))
    _, second = policy.decide(state, UpcomingBatch({7: 2, 8: 1}, 3))
    assert [first.value.owner(7, row) for row in range(5)] == [0, 1, 2, 0, 1]
    assert [second.value.owner(7, row) for row in range(2)] == [2, 0]
    assert second.value.owners(8) == (2, 0, 1)


@pytest.mark.parametrize("name", ["PB_RR", "TB_RR", "AS", "AS_PID"])
def test_the_papers_names_are_understood(name: str):
    assert splitting(name) is POLICIES[name]
    assert POLICIES[name].name == name


def test_a_user_defined_policy_is_used_unchanged():
    @dataclass(frozen=True)
    class FirstTwo(PaneRoundRobin):
        name: ClassVar[str] = "two"

        def decide(self, state: NoState, known: UpcomingBatch) -> tuple[NoState, Decision[Routing]]:
            return super().decide(state, UpcomingBatch(known.rows, min(known.workers, 2)))

    policy = FirstTwo()
    assert splitting(policy) is policy


def test_an_unknown_name_is_refused_with_those_known():
    with pytest.raises(ConfigError, match=r"^splitting must be one of PB_RR, TB_RR, AS, AS_PID, got 'AS_PDI'$"):
        splitting("AS_PDI")


def test_shares_are_runs_of_a_panes_rows():
    routing = Routing(4, {3: (Share(2, 2), Share(0, 1))})
    assert [routing.owner(3, row) for row in range(4)] == [2, 2, 0, 2]
    assert routing.owners(3) == (2, 0)
    assert routing.owners(5) == (1,), "a pane without shares has its owner by turn"


@pytest.mark.parametrize("shares", [(), (Share(4, 1),), (Share(0, 0),), (Share(0, 1), Share(4, 1))])
def test_shares_that_lead_nowhere_are_refused(shares: tuple[Share, ...]):
    with pytest.raises(ConfigError, match="pane 3 needs shares of at least 1 row on workers below 4"):
        Routing(4, {3: shares})


def test_rows_of_a_batch_that_go_to_everyone_by_hand():
    """From worker 1 on: four rows to 1, 2, 0, 1, and the one of the next pane to 2."""
    assert Routing(3, everywhere=True, turn=1).rows_by_worker({0: 4, 1: 1}) == (1, 2, 2)


def test_routing_needs_a_worker():
    with pytest.raises(ConfigError, match="need at least one worker"):
        Routing(0)


@given(
    workers=st.integers(1, 5),
    everywhere=st.booleans(),
    rows=st.dictionaries(st.integers(0, 4), st.integers(0, 30), max_size=4),
    data=st.data(),
)
def test_rows_by_worker_are_those_of_row_by_row(workers, everywhere, rows, data):
    share = st.builds(Share, st.integers(0, workers - 1), st.integers(1, 5))
    shares = data.draw(st.dictionaries(st.integers(0, 4), st.lists(share, min_size=1, max_size=3).map(tuple)))
    routing = Routing(workers, shares, everywhere=everywhere, turn=data.draw(st.integers(0, workers - 1)))
    expected, sent = [0] * workers, 0
    for pane, count in rows.items():
        owners = set()
        for row in range(count):
            in_turn = everywhere and pane not in shares
            owners.add(worker := routing.owner(pane, sent if in_turn else row))
            expected[worker] += 1
            sent += in_turn
        assert routing.partitions(pane, count) == len(owners)
    assert routing.rows_by_worker(rows) == tuple(expected)
