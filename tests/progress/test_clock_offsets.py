"""Clocks that are off: learned as the words say, forgotten when refuted, in bounded state."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.definition.clocks import Clocks
from tests.progress.streams import counted

from skypane.progress import AqKSlack, KSlack, PaneArrivals, SourceCount
from skypane.progress.clock_offsets import HEARD, MOST, ClockOffsets
from skypane.snapshots import from_json, through_json, to_json
from skypane.windows import Windows

NAMES = "abcdefg"
SECOND, HOUR = 1_000_000, 3_600_000_000
MINUTE = 60 * SECOND
BOUND = MINUTE


def batch(shown, corrected=()):
    """A batch with a row of each source; those in `corrected` have entered with other times."""
    sources = {name: SourceCount(1, 0, time) for name, time in shown.items() if name not in corrected}
    return replace(PaneArrivals.none(), sources=sources, shown={name: shown[name] for name in corrected})


def played(batches, bound=BOUND, right=("b", "c", "d")):
    """The clocks after these batches, in which sources with `right` clocks have a row too."""
    offsets, before = ClockOffsets(), None
    for newest, shown in batches:
        offsets = offsets.after(batch(dict.fromkeys(right, newest) | shown), before, newest, bound)
        before = newest
    return offsets


def steady(number, **off):
    """A batch each minute, with a source for each of `off`, which shows a time that is off by so much."""
    return [(minute * MINUTE, {name: minute * MINUTE + by for name, by in off.items()}) for minute in range(number)]


def test_worked_by_hand():
    assert played(steady(11, a=HOUR, b=0)).learned == {}
    assert played(steady(12, a=HOUR, b=0)).learned == {"a": HOUR}
    assert played(steady(12, a=-HOUR, b=MINUTE)).learned == {"a": -HOUR}, "b is within the bound"


def test_late_rows_do_not_hide_a_clock():
    late = [(newest, {"a": shown["a"] - (newest // MINUTE % 4) * HOUR}) for newest, shown in steady(12, a=HOUR)]
    assert played(late).learned == {"a": HOUR}


def test_a_source_that_catches_up_is_not_off():
    catching = [(newest, {"a": newest - HOUR + newest // 5}) for newest, _ in steady(120, a=0)]
    assert played(catching).learned == {}


def test_a_clock_that_drifts_is_followed():
    drifting = [(newest, {"a": newest + HOUR + newest // 1_000}) for newest, _ in steady(6_000, a=0)]
    assert abs(played(drifting).learned["a"] - HOUR - 6 * MINUTE) <= MINUTE


def test_a_clock_that_is_right_again_is_accepted_after_two_batches():
    right = [(newest, {"a": newest}) for newest, _ in steady(14, a=0)[12:]]
    assert played([*steady(12, a=HOUR), right[0]]).learned == {"a": HOUR}
    assert played([*steady(12, a=HOUR), *right]).clocks == {}


def test_a_source_that_leaves_and_comes_back_has_its_clock_still():
    gone: list[tuple[int, dict[str, int]]] = [(newest, {}) for newest, _ in steady(500, a=0)[12:]]
    back = [(500 * MINUTE, {"a": 500 * MINUTE + HOUR})]
    assert played([*steady(12, a=HOUR), *gone, *back]).learned == {"a": HOUR}


def test_the_clock_of_a_source_that_is_left_alone_is_accepted():
    """When all others have gone, the stream stands still, while the clock of the one that is left moves on."""
    alone = [(11 * MINUTE, {"a": minute * MINUTE + HOUR}) for minute in range(12, 17)]
    assert played([*steady(12, a=HOUR), *alone]).learned == {}


@given(st.integers(0, 10**9))
def test_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    bound = int(rng.choice([1, 5, 60])) * SECOND
    offsets, clocks, newest, before = ClockOffsets(), Clocks(bound), 0, None
    off: dict[str, int] = {}
    for _ in range(int(rng.integers(1, 80))):
        newest += int(rng.choice([0, bound // 2, bound, 5 * bound]))
        if rng.random() < 0.1 or not off:
            off = {name: int(rng.choice([0, 0, 0, 1, -2, 3, -50, 400]) * bound) for name in NAMES}
        late = rng.exponential(bound / 3, len(NAMES)) * (rng.random(len(NAMES)) < 0.5)
        there = [name for name in NAMES if rng.random() < 0.8]
        shown = {name: newest + off[name] - int(late[NAMES.index(name)]) for name in there}
        offsets = offsets.after(batch(shown, corrected=offsets.learned.keys() & set(there)), before, newest, bound)
        clocks.take(shown, newest)
        before = newest
        assert offsets.learned == clocks.offsets()
        offsets = from_json(ClockOffsets, through_json(to_json(offsets)))


@pytest.mark.parametrize("rows", [50, 400, 1_500])
@pytest.mark.parametrize("policy", [KSlack(), AqKSlack(0.01)], ids=lambda policy: type(policy).__name__)
def test_the_offset_is_the_same_for_any_batches(policy, rows):
    rng = np.random.default_rng(3)
    n = 40_000
    time, source = np.sort(rng.integers(0, 8 * HOUR, n)), rng.integers(0, 20, n)
    arrival = time + rng.exponential(5 * SECOND, n).astype(np.int64)
    order = np.argsort(arrival, kind="stable")
    shown = (time + np.where(source == 7, HOUR, 0) - np.where(source == 11, 2 * HOUR, 0))[order]
    source = source[order]
    state = policy.init()
    for first, last in pairwise(range(0, n + 1, rows)):
        arrivals = counted(shown[first:last], source[first:last], Windows.of("1 minute"))
        state = policy.restore(through_json(policy.snapshot(policy.decide(state, arrivals)[0])))
    learned = state.offsets.learned
    assert learned.keys() == {"7", "11"}
    assert abs(learned["7"] - HOUR) < MINUTE
    assert abs(learned["11"] + 2 * HOUR) < MINUTE


def test_the_state_is_bounded_and_keeps_what_is_learned():
    few, right = [f"s{number}" for number in range(20)], [f"r{number}" for number in range(10_001)]
    offsets = played(steady(12, **dict.fromkeys(few, HOUR)), right=right)
    many = {f"t{number}": 12 * MINUTE + 9 * HOUR for number in range(10_000)}
    offsets = offsets.after(batch(many | dict.fromkeys(right, 12 * MINUTE)), 11 * MINUTE, 12 * MINUTE, BOUND)
    assert len(offsets.clocks) == MOST
    assert len(offsets.heard) == HEARD
    assert offsets.learned.keys() == set(few)


def test_clocks_that_were_not_heard_for_longest_make_room():
    old, new = ([f"{letter}{number}" for number in range(MOST)] for letter in "on")
    right = [f"r{number}" for number in range(MOST + 1)]
    batches = steady(12, **dict.fromkeys(old, HOUR))
    assert len(played(batches, right=right).learned) == MOST
    offsets = played(batches + steady(40, **dict.fromkeys(new, HOUR))[12:], right=right)
    assert len(offsets.clocks) == MOST
    assert any(name.startswith("n") for name in offsets.learned)


def test_where_wrong_clocks_move_the_stream_the_others_are_right():
    """The newest time is that of a, an hour ahead of the rest."""
    ahead = [(newest + HOUR, {"a": newest + HOUR} | dict.fromkeys("bcd", newest)) for newest, _ in steady(12, a=0)]
    assert played(ahead, right=()).learned == {"a": HOUR}


def test_of_two_sources_nobody_knows_which_is_wrong():
    assert played(steady(50, a=HOUR), right=("b",)).clocks == {}


def test_a_source_with_a_row_at_the_begin_of_each_long_batch_is_right():
    """Ten minutes a batch: its last row is nine minutes old; one with a row each minute whose newest is as old is not right."""
    sparse = [(10 * newest, {"a": 10 * newest - 9 * MINUTE}) for newest, _ in steady(50, a=0)]
    assert played(sparse).learned == {}
    offsets = ClockOffsets()
    for newest, shown in sparse:
        arrivals = batch(shown | dict.fromkeys("bcd", newest))
        often = {name: one._replace(rows=10) for name, one in arrivals.sources.items()}
        offsets = offsets.after(replace(arrivals, sources=often), newest - 10 * MINUTE, newest, BOUND)
    assert offsets.learned == {"a": -9 * MINUTE}


@pytest.mark.parametrize(("clocks", "done"), [("align", "corrected"), ("quarantine", "quarantined")])
def test_the_reason_names_the_clock_and_what_is_done(clocks, done):
    policy = KSlack(clocks=clocks)
    state = policy.init()
    for newest, shown in steady(13, a=-2 * HOUR, b=0, c=0):
        arrivals = PaneArrivals.at_once([newest - 1, newest], Windows.of("1 minute"))
        rules = policy.clock_rules(state)
        sources = batch(shown, corrected={"a"} if rules else ())
        state, decision = policy.decide(state, replace(arrivals, sources=sources.sources, shown=sources.shown))
    assert rules is not None
    assert rules.offsets == {"a": -2 * HOUR}
    assert rules.align == (clocks == "align")
    assert f"the clock of a is about 2 h behind, its rows are {done}" in decision.because
    assert decision.because.count("clock") == 1
    assert (decision.figures["clocks_off"], decision.figures["farthest_clock"]) == (1, -2 * HOUR)
    assert KSlack().clock_rules(state) is None
