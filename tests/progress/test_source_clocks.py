from __future__ import annotations

import numpy as np
import pytest
from tests.progress.streams import counted

from skypane.progress import AqKSlack, KSlack, SourceCount, Watermark
from skypane.progress.source_clocks import MOST, ClockOffset, SourceClocks
from skypane.snapshots import from_json, through_json, to_json
from skypane.windows import Windows

SECOND, HOUR = 1_000_000, 3_600_000_000
PANES = Windows.of("1 minute")


def played(batches):
    clocks = SourceClocks()
    for newest, sources in batches:
        clocks = clocks.after({name: SourceCount(*source) for name, source in sources.items()}, newest)
    return clocks


def explained(policy, wrong=None, by=0):
    """Return the state and its reason after 30 s of 20 sources, hardly out of order, with the clock of one wrong."""
    rng, state = np.random.default_rng(1), policy.init()
    for second in range(10_000, 10_030):
        names = np.array([f"s{number:02}" for number in range(20)])[rng.integers(0, 20, 200)]
        time = ((second + rng.random(200)) * SECOND + rng.exponential(SECOND / 5, 200)).astype(np.int64)
        time[names == wrong] += by
        state, decision = policy.decide(state, counted(time, names, PANES, state.punctuation))
    return state, decision.because


def test_worked_by_hand():
    # (rows, late, newest): a is an hour ahead, b is late once, c is in order
    batches = [
        (10, {"a": (1, 0, 110), "b": (2, 0, 10), "c": (1, 0, 9)}),
        (20, {"a": (1, 0, 119), "b": (2, 2, 3), "c": (1, 0, 20)}),
        (30, {"b": (2, 0, 28)}),
    ]
    assert played(batches[:2]).off == {"a": (99, 100, 2), "b": (-17, -17, 1)}
    assert played(batches).off == {"a": (99, 100, 2)}
    assert str(played(batches)) == ""
    batches.append((40, {"a": (1, 0, 141)}))
    assert played(batches).off == {"a": (99, 101, 3)}
    assert str(played(batches)) == "the clock of a is about 100 us ahead"
    batches.append((50, {"a": (1, 0, 50)}))
    assert played(batches) == SourceClocks()


def test_a_source_that_is_ahead_and_then_late_is_counted_again_from_one():
    assert played([(10, {"a": (1, 0, 15)}), (10, {"a": (1, 0, 16)}), (10, {"a": (1, 1, 3)})]).off == {"a": (-7, -7, 1)}


def test_rows_that_are_late_by_different_times_are_not_a_clock():
    assert str(SourceClocks({"a": ClockOffset(-100, -199, 9)})) == "the clock of a is about 150 us behind"
    assert str(SourceClocks({"a": ClockOffset(-100, -200, 9)})) == ""


def test_the_farthest_is_named_and_the_others_are_counted():
    off = {"a": ClockOffset(HOUR, HOUR, 3), "b": ClockOffset(-2 * HOUR, -2 * HOUR, 3), "c": ClockOffset(1, 1, 3)}
    assert str(SourceClocks(off)) == "the clock of b is about 2 h behind, 2 more are off"


def test_the_state_is_bounded_and_keeps_what_has_been_off_for_longest():
    clocks = played([(0, {f"s{number}": (1, 0, number) for number in range(1, MOST)})] * 3)
    clocks = clocks.after({f"t{number}": SourceCount(1, 0, 10**6) for number in range(10 * MOST)}, 0)
    assert len(clocks.off) == MOST
    assert sum(name.startswith("s") for name in clocks.off) == MOST - 1
    assert from_json(SourceClocks, through_json(to_json(clocks))) == clocks


@pytest.mark.parametrize("policy", [KSlack(), AqKSlack(0.01)], ids=lambda policy: type(policy).__name__)
def test_a_clock_an_hour_ahead_is_named(policy):
    state, because = explained(policy, "s07", HOUR)
    assert state.dropped == 0
    assert "the clock of s07 is about 1 h ahead" in because
    assert "more" not in because


@pytest.mark.parametrize(
    "policy", [Watermark("10 seconds"), KSlack(max_slack="1 minute"), AqKSlack(0.1, max_slack="1 minute")]
)
def test_a_clock_that_is_behind_all_that_is_waited_for_is_named(policy):
    _, because = explained(policy, "s11", -HOUR)
    assert "the clock of s11 is about 1 h behind" in because


@pytest.mark.parametrize("policy", [Watermark("10 seconds"), KSlack(), AqKSlack(0.01)])
def test_clocks_that_agree_are_not_mentioned(policy):
    _, because = explained(policy)
    assert "clock" not in because
