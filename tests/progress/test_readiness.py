from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import PANE, arrivals

from skypane.progress import Readiness, SourceCount

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 300)), min_size=1, max_size=12)


def batch(rows, arrived=None):
    sources: dict[str, SourceCount] = {}
    for name, time in rows:
        known = sources.get(name, SourceCount(0, 0, time))
        sources[name] = known.merge(SourceCount(1, 0, time))
    return replace(arrivals([time for _, time in rows]), sources=sources, arrived=arrived)


def steps(policy, stream, clock=None):
    state = policy.init()
    for number, rows in enumerate(stream):
        state = policy.decide(state, batch(rows, None if clock is None else clock[number]))[0]
        yield state


def test_worked_by_hand():
    # b stands at 1,020 until nothing has come from it in two batches, and is waited for again once it is back
    stream = [
        [("a", 1_000), ("b", 1_010)],
        [("a", 1_050), ("b", 1_020)],
        [("a", 1_120)],
        [("a", 1_121)],
        [("b", 1_015)],
        [("a", 1_200), ("b", 1_100)],
        [("a", 1_300), ("b", 1_250)],
    ]
    found = list(steps(Readiness(2), stream))
    assert [state.punctuation for state in found] == [1_000, 1_020, 1_020, 1_121, 1_121, 1_121, 1_250]
    assert [sorted(state.sources) for state in found] == [["a", "b"]] * 3 + [["a"]] + [["a", "b"]] * 3
    assert [dict(state.silent) for state in found] == [{}, {}, {"b": 1}, {}, {"a": 1}, {}, {}]
    assert [state.dropped for state in found] == [0, 0, 0, 0, 1, 2, 2]


def test_a_duration_is_measured_by_the_clock_of_arrival():
    stream = [[("a", 1_000), ("b", 1_000)], *([("a", 1_000 + number)] for number in range(1, 5))]
    clock = [0, 40, 70, 90, 100]  # nothing has come from b since 0
    found = list(steps(Readiness("90 us"), stream, clock))
    assert [state.silent.get("b") for state in found] == [None, 40, 70, None, None]
    assert [state.punctuation for state in found] == [1_000, 1_000, 1_000, 1_003, 1_004]


def test_no_source_is_idle_because_the_job_was_stopped():
    stream = [[("a", 1_000), ("b", 1_000)], [("a", 1_010)], [("b", 1_005)], [("a", 1_020)]]
    clock = [0, 1_000_000, 1_000_010, 1_000_020]
    found = list(steps(Readiness("100 us"), stream, clock))
    assert [sorted(state.sources) for state in found] == [["a", "b"]] * 4
    assert [state.dropped for state in found] == [0] * 4


def test_a_clock_that_goes_back_ends_no_silence():
    stream = [[("a", 1_000), ("b", 1_000)], *([("a", 1_000 + number)] for number in range(1, 4))]
    found = list(steps(Readiness("100 us"), stream, [500, 540, 20, 65]))
    assert [state.silent.get("b") for state in found] == [None, 40, 40, 85]


@given(st.lists(ROWS, max_size=12), st.integers(1, 4), st.integers(1, 200))
def test_is_the_definition(stream, idle_after, max_behind):
    newest: dict[str, int] = {}
    heard: dict[str, int] = {}
    reached, punctuation = 0, None
    policy = Readiness(idle_after, max_behind=f"{max_behind} us", max_ahead=None)
    for number, (state, rows) in enumerate(zip(steps(policy, stream), stream, strict=True)):
        for name, time in rows:
            newest[name], heard[name] = max(time, newest.get(name, time)), number
            reached = max(reached, time)
        for name in tuple(newest):
            if number - heard[name] == idle_after or newest[name] < reached - max_behind:
                del newest[name]
        ready = min(newest.values(), default=reached)
        punctuation = ready if punctuation is None else max(punctuation, ready)
        assert state.punctuation == punctuation


def test_a_clock_that_is_ahead_drops_no_row_of_the_others():
    """Of 50 sources in order of their own clocks, one is two hours ahead: the others are waited for, and lose nothing."""
    ahead = {"s07": 7_200_000_000}
    names = [f"s{number:02}" for number in range(50)]
    stream = [[(name, minute * 60_000_000 + ahead.get(name, 0)) for name in names] for minute in range(240)]
    found = list(steps(Readiness("10 minutes"), stream, [minute * 60_000_000 for minute in range(240)]))
    assert found[-1].dropped == 0
    assert found[-1].punctuation == 239 * 60_000_000


def test_a_clock_that_is_far_behind_keeps_no_pane_open():
    stream = [[("a", minute * 60_000_000 + 10**15), ("b", minute * 60_000_000)] for minute in range(5)]
    found = list(steps(Readiness(3, max_ahead=None), stream))
    assert found[-1].punctuation == 4 * 60_000_000 + 10**15
    assert list(steps(Readiness(3, max_ahead=None, max_behind=None), stream))[-1].punctuation == 4 * 60_000_000


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 9), st.data())
def test_no_row_of_sources_that_send_in_order_is_late(names, size, data):
    """Each source sends in order, one is ahead of another; all are known from the first batch on."""
    clock = dict.fromkeys("abc", 1_000)
    rows = [(name, 1_000) for name in clock]
    for name in names:
        clock[name] += data.draw(st.integers(0, 3 * PANE))
        rows.append((name, clock[name]))
    stream = [rows[:3], *(rows[at : at + size] for at in range(3, len(rows), size))]
    assert [state.dropped for state in steps(Readiness(60), stream)][-1] == 0


def test_a_source_that_is_far_ahead_moves_nothing():
    found = list(
        steps(Readiness("100 us", max_ahead="1000 us"), [[("a", 1_000)] * 3 + [("b", 90_000)], [("a", 1_010)]])
    )
    assert [state.punctuation for state in found] == [1_000, 1_000]
    assert found[-1].newest == 1_010


def test_names_the_source_that_lags():
    policy = Readiness("1 hour")
    found = list(steps(policy, [[("meter 3", 0), ("meter 4", 90_000_000)], [("meter 3", 90_000_000)]]))
    assert policy.explain(policy.init()) == "no source is known"
    assert policy.explain(found[0]) == "meter 3, the last of 2 sources, is 1.5 min behind the newest time"
    assert policy.explain(found[1]) == "all of 2 sources have come as far as the newest time"


@given(st.lists(ROWS, max_size=6))
def test_goes_through_json(stream):
    policy = Readiness("50 us")
    for state in steps(policy, stream, [20 * number for number in range(6)]):
        assert policy.restore(json.loads(json.dumps(policy.snapshot(state)))) == state


def test_a_state_of_version_0_2_is_read():
    policy = Readiness("50 us")
    before = policy.snapshot(list(steps(policy, [[("a", 1_000), ("b", 1_010)]], [5]))[-1])
    del before["silent"], before["arrived"]
    state = policy.restore(before)
    assert state.sources == {"a": 1_000, "b": 1_010}
    assert (state.silent, state.arrived) == ({}, None)
    assert policy.decide(state, batch([("a", 1_100)], 90))[0].silent == {"b": 0}


def test_two_policies_describe_themselves_alike_only_if_they_are_equal():
    five = Readiness(5), Readiness("5 us"), Readiness("5 us", max_behind=None)
    assert len({json.dumps(policy.describe()) for policy in five}) == 3
    assert not five[0].needs_arrival
    assert five[1].needs_arrival
