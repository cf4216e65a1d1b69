from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import PANE, arrivals

from skypane.progress import Readiness, SourceCount
from skypane.types import CheckpointError, ConfigError

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 300)), min_size=1, max_size=12)


def batch(rows):
    sources: dict[str, SourceCount] = {}
    for name, time in rows:
        known = sources.get(name, SourceCount(0, 0, time))
        sources[name] = known.merge(SourceCount(1, 0, time))
    return replace(arrivals([time for _, time in rows]), sources=sources)


def steps(policy, stream):
    state = policy.init()
    for rows in stream:
        state = policy.decide(state, batch(rows))[0]
        yield state


def test_worked_by_hand():
    # idle after 100; b stands at 1020 until a is more than 100 ahead, and is waited for again once it is back
    stream = [
        [("a", 1_000), ("b", 1_010)],
        [("a", 1_050), ("b", 1_020)],
        [("a", 1_120)],
        [("a", 1_121)],
        [("b", 1_015)],
        [("b", 1_100)],
    ]
    found = list(steps(Readiness("100 us"), stream))
    assert [state.punctuation for state in found] == [1_000, 1_020, 1_020, 1_121, 1_121, 1_121]
    assert [sorted(state.sources) for state in found] == [["a", "b"]] * 3 + [["a"]] * 2 + [["a", "b"]]
    assert [state.dropped for state in found] == [0, 0, 0, 0, 1, 2]


@given(st.lists(ROWS, max_size=12), st.integers(1, 200))
def test_is_the_definition(stream, idle_after):
    newest: dict[str, int] = {}
    punctuation = None
    for state, rows in zip(steps(Readiness(f"{idle_after} us", max_ahead=None), stream), stream, strict=True):
        for name, time in rows:
            newest[name] = max(time, newest.get(name, time))
        last = max(newest.values())
        ready = min(time for time in newest.values() if time >= last - idle_after)
        punctuation = ready if punctuation is None else max(punctuation, ready)
        assert state.punctuation == punctuation


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 9), st.data())
def test_no_row_of_sources_that_send_in_order_is_late(names, size, data):
    """Each source sends in order, one is ahead of another; all are known from the first batch on."""
    clock = dict.fromkeys("abc", 1_000)
    rows = [(name, 1_000) for name in clock]
    for name in names:
        clock[name] += data.draw(st.integers(0, 3 * PANE))
        rows.append((name, clock[name]))
    stream = [rows[:3], *(rows[at : at + size] for at in range(3, len(rows), size))]
    assert [state.dropped for state in steps(Readiness("1 day"), stream)][-1] == 0


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
    for state in steps(policy, stream):
        assert policy.restore(json.loads(json.dumps(policy.snapshot(state)))) == state


@pytest.mark.parametrize("sources", [None, [], {"a": "late"}])
def test_a_snapshot_that_is_none_is_refused(sources):
    policy = Readiness("50 us")
    with pytest.raises(CheckpointError, match="SourceProgress in the checkpoint: sources"):
        policy.restore({**policy.snapshot(policy.init()), "sources": sources})


def test_invalid_values_are_refused():
    with pytest.raises(ConfigError, match=r"idle_after.*0"):
        Readiness("0 us")
