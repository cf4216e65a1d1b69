from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.exchange import CONFIRM, Exchange
from skypane.control.fitting import Move, Timing, fit
from skypane.control.placement import DueWindows, place_windows
from skypane.control.predictions import ExpectedBatch, SourceSpread, SplittingOption
from skypane.types import ConfigError


def timings(costs: Costs) -> list[Timing]:
    """What a machine of these costs would show."""
    return [
        Timing("job", 1, 0, costs.job),
        *(Timing("exchange", 1, rows, costs.exchanging(rows)) for rows in (50_000, 1_000_000)),
        *(Timing("window", 20, rows, 20 * costs.window + rows * costs.window_per_row) for rows in (2_000, 200_000)),
        *(
            Timing("front", 9_000, pairs, 9_000 * costs.front_per_row + pairs * costs.front_per_pair)
            for pairs in (10**6, 10**9)
        ),
        *(Timing("group", 1, rows, 0.001 + rows * costs.group_per_row) for rows in (1_000, 100_000)),
        *(Timing("shard", 1, rows, 0.001 + rows * costs.shard_per_row) for rows in (1_000, 100_000)),
        *(Timing("comparison", 1, rows, 0.001 + rows * costs.compared_per_row) for rows in (1_000, 100_000)),
        *(Timing("division", 1, rows, 0.001 + rows * costs.divided_per_row) for rows in (1_000, 100_000)),
        Timing("threads", 2, 0, 2 * costs.threads),
        Timing("shard threads", 2, 0, 2 * costs.shard_threads),
    ]


seconds = st.floats(1e-4, 1.0)
seconds_a_row = st.floats(1e-8, 1e-5)


COSTS = list(DEFAULT_COSTS.in_seconds())
seconds_a_pair = st.floats(1e-12, 1e-9)


@given(st.tuples(
    seconds, seconds_a_row, seconds, seconds_a_row, seconds, seconds_a_row, seconds_a_pair, seconds_a_row, seconds_a_row,
    seconds_a_row, seconds_a_row, seconds, seconds,
))  # fmt: skip
def test_a_machine_is_known_by_its_timings(parts):
    costs = Costs(**dict(zip(COSTS, parts, strict=True)), measured="here")
    found = fit(timings(costs), "here")
    assert (found.measured, found.many_keys) == ("here", DEFAULT_COSTS.many_keys)
    assert found.in_seconds() == pytest.approx(costs.in_seconds(), rel=1e-6)


@given(st.lists(st.floats(-0.1, 1.0), min_size=14, max_size=14))
def test_noise_never_makes_an_invalid_cost(noise):
    """Larger moves that took less time: nothing is negative, and indistinguishable costs are refused."""
    job, *moves, threads, shard_threads = timings(DEFAULT_COSTS)
    noisy = [replace(move, seconds=seconds) for move, seconds in zip(moves, noise, strict=True)]
    try:
        costs = fit([job, *noisy, threads, shard_threads], "noise")
    except ConfigError:
        kinds = (noise[at : at + 2] for at in range(0, 14, 2))
        assert any(max(kind) <= 1e-9 for kind in kinds), "of one kind no move took any time"
        return
    assert min(costs.in_seconds().values()) >= 0


@pytest.mark.parametrize(("few", "many", "cost"), [(-0.01, 0.3, (0.0, 0.3e-6)), (0.3, -0.01, (0.3, 0.0))])
def test_a_move_too_quick_to_be_timed_costs_nothing(few, many, cost):
    job, first, second, *others = timings(DEFAULT_COSTS)
    costs = fit([job, replace(first, seconds=few), replace(second, seconds=many), *others], "here")
    assert (costs.exchange, costs.exchange_per_row) == pytest.approx(cost)


@pytest.mark.parametrize("missing", get_args(Move))
def test_a_kind_of_move_that_was_not_timed_is_an_error(missing):
    with pytest.raises(ConfigError):
        fit([timing for timing in timings(DEFAULT_COSTS) if timing.move != missing], "here")


def test_policies_decide_by_what_was_measured():
    """A machine whose exchanges and jobs are ten times as cheap exchanges, and answers on workers, where others do not."""
    quick = fit(timings(Costs(0.006, 0.035e-6, 0.8e-3, 0.4e-6, 0.015)), "a quick one")
    uneven = SourceSpread(1_000_000, (0.2,), (10_000,) * 100, partials=100, merge_seconds=0.0, workers=2)
    option = SplittingOption("PB_RR", 500_000, (1,) * 100)
    known = ExpectedBatch(dict.fromkeys(range(100), 10_000), 2, (option,))
    due = DueWindows(10, 100_000, 1, 4)
    for costs, way, where in ((DEFAULT_COSTS, None, "driver"), (quick, "PB_RR", "spark")):
        policy = Exchange(costs)
        state = policy.init()
        for _ in range(CONFIRM):
            state, decision = policy.decide(policy.observe(state, uneven), known)
        assert decision.value == way
        assert place_windows(due, costs).value.where == where
