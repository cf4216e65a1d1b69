"""Readers by equation 1a: cases by hand, and what holds for any."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.readers import Backlog, ReaderBatch, Readers, ReadersState
from skypane.types import ConfigError


def decided(policy: Readers, state: ReadersState, rate: float, backlog: float = 0.0) -> tuple[ReadersState, int, str]:
    state, decision = policy.decide(state, Backlog(rate, backlog))
    return state, decision.value, decision.because


def test_the_number_of_readers_follows_from_rate_backlog_and_cost_by_hand():
    """A reader reads 1,000 rows/s, of which a tenth is kept free: 1,700 rows/s need 1.9 of them, 8,500 that wait as much."""
    policy = Readers(max_readers=8, latency="5 seconds", idle_timeout=1)
    state = policy.observe(policy.init(), ReaderBatch(rows=2_000, seconds=1.0, readers=2))
    assert decided(policy, ReadersState(1, state.costs), 1_700)[1] == 2
    _, readers, because = decided(policy, ReadersState(1, state.costs), 1_700, 8_500)
    assert readers == 4
    assert because == "1700 rows/s and 8500 waiting x 1000.0 us, bound 5 seconds -> 4 of 8 readers, 1 -> 4"
    stated = policy.decide(ReadersState(1, state.costs), Backlog(3_600, 0, "x10 at 09:30 UTC, in 60 s"))[1]
    assert (stated.value, stated.because) == (
        4, "3600 rows/s (x10 at 09:30 UTC, in 60 s) and 0 waiting x 1000.0 us, bound 5 seconds -> 4 of 8 readers, 1 -> 4"
    )  # fmt: skip
    assert decided(policy, ReadersState(1, state.costs), 1e9)[1] == 8  # no more than there may be


def test_small_batches_do_not_make_rows_look_dear():
    policy = Readers(max_readers=8)
    state = policy.init()
    for rows, seconds in ((10, 0.2), (10_000, 1.2), (20, 0.2)):
        state = policy.observe(state, ReaderBatch(rows, seconds, 1))
    assert min(state.costs) == pytest.approx(1.2e-4)
    assert policy.observe(state, ReaderBatch(0, 1.0, 1)) == state


def test_what_a_batch_costs_by_itself_keeps_no_reader():
    """25 rows a second of 20 ms, in batches that take 0.6 s more: half a reader's work, and seven times that while it lasts."""
    policy, had = Readers(max_readers=8, latency="5 seconds"), []
    state, lasted = policy.init(), 1.0
    for rate in [25.0] * 150 + [175.0] * 30 + [25.0] * 150:
        rows = max(1, round(rate * lasted))
        state, readers, _ = decided(policy, state, rate, rows)
        lasted = 0.6 + rows * 0.02 / readers
        state = policy.observe(state, ReaderBatch(rows, lasted, readers))
        had.append(readers)
        assert rate * lasted < 5 * rate  # no row waits for longer than the bound
    assert had[149] == had[-1] == 1
    assert 4 <= min(had[155:180]) <= max(had[155:180]) <= 6


def test_until_a_batch_was_seen_all_readers_read_and_then_they_are_given_back_one_at_a_time():
    policy = Readers(max_readers=4, idle_timeout=2)
    state, readers, because = decided(policy, policy.init(), 10)
    assert (readers, because) == (4, "no batch measured yet: all 4 readers")
    state = policy.observe(state, ReaderBatch(1_000, 0.1, 4))
    had = []
    for _ in range(8):
        state, readers, _ = decided(policy, state, 10)
        had.append(readers)
    assert had == [4, 3, 3, 2, 2, 1, 1, 1]


def test_a_dry_run_reports_and_changes_nothing():
    policy = Readers(max_readers=4, idle_timeout=1, dry_run=True)
    state = policy.observe(policy.init(), ReaderBatch(1_000, 0.1, 4))
    _, readers, because = decided(policy, state, 10)
    assert readers == 4
    assert because.endswith("-> 1 of 4 readers, 4 -> 3 (dry run: stays)")


@given(rate=st.floats(0, 1e6), backlog=st.floats(0, 1e7), cost=st.floats(1e-7, 1e-2), most=st.integers(1, 50),
       now=st.integers(1, 50), latency=st.integers(1, 60))  # fmt: skip
def test_the_bound_is_kept_wherever_there_may_be_enough_readers(
    rate: float, backlog: float, cost: float, most: int, now: int, latency: int
):
    policy = Readers(max_readers=most, latency=f"{latency} seconds")
    state = ReadersState(min(now, most), (cost,))
    after, decision = policy.decide(state, Backlog(rate, backlog))
    load = (rate + backlog / latency) * cost
    enough = math.ceil(load / 0.9)
    assert 1 <= decision.value <= most
    assert decision.value >= min(most, enough) - 1  # the backlog is counted in whole rows
    assert decision.value >= state.readers - 1
    assert policy.restore(policy.snapshot(after)) == after


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_readers", 0), ("idle_timeout", 0), ("latency", "0 s"), ("headroom", 1.0), ("max_readers", 2.0)],
)
def test_invalid_values_are_refused(field: str, value: object):
    with pytest.raises(ConfigError, match=field):
        Readers(**{"max_readers": 2, field: value})  # type: ignore[arg-type]


def test_a_state_of_version_0_2_is_read():
    policy = Readers(max_readers=8)
    before = policy.snapshot(replace(policy.init(), surplus=3))
    before["calm"] = before.pop("surplus")
    assert policy.restore(before).surplus == 3
