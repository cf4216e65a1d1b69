from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting import AnyWorker, ByPane, PaneRoundRobin, Routing, TupleRoundRobin, splitting
from skypane.types import ConfigError


@given(st.integers(1, 20), st.integers(-1_000, 1_000))
def test_panes_go_round_robin_before_the_epoch_too(workers: int, first: int):
    routing = PaneRoundRobin().route(workers)
    assert isinstance(routing, ByPane)
    owners = [routing.owner(pane) for pane in range(first, first + workers)]
    assert sorted(owners) == list(range(workers)), "as many panes as workers: each gets one"
    assert routing.owner(first) == routing.owner(first + workers)


def test_rows_go_to_any_worker():
    assert TupleRoundRobin().route(3) == AnyWorker(3)


@pytest.mark.parametrize(("name", "policy"), [("PB_RR", PaneRoundRobin()), ("TB_RR", TupleRoundRobin())])
def test_the_papers_names_are_understood(name: str, policy: PaneRoundRobin | TupleRoundRobin):
    assert splitting(name) == policy
    assert policy.name == name


def test_a_policy_of_ones_own_is_taken_as_it_is():
    @dataclass(frozen=True)
    class AlwaysTwo:
        name: str = "two"

        def route(self, workers: int) -> Routing:
            return ByPane(min(workers, 2))

    policy = AlwaysTwo()
    assert splitting(policy) is policy


def test_an_unknown_name_is_refused_with_those_known():
    with pytest.raises(ConfigError, match=r"^splitting must be one of PB_RR, TB_RR, got 'AS_PID'$"):
        splitting("AS_PID")
