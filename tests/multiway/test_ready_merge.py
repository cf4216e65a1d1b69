"""The columnar merge against definition 1 of paper 2, tuple by tuple."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.multiway import Ready, ReadyMerge
from skypane.multiway.ready_merge import MergeState
from skypane.types import BadInputError, ConfigError

Tuple = tuple[int, int, int]
"""Time, input, sequence."""


@st.composite
def streams(draw: st.DrawFn) -> list[list[Tuple]]:
    """A few inputs, each in the order of time, with ties within and between them."""
    steps = st.lists(st.integers(0, 2), max_size=12)
    return [
        [(int(time), source, number) for number, time in enumerate(np.cumsum(draw(steps)))]
        for source in range(draw(st.integers(1, 4)))
    ]


@st.composite
def arrivals(draw: st.DrawFn, inputs: list[list[Tuple]]) -> list[list[Tuple]]:
    """An interleaving of the inputs, cut into batches."""
    left, order = [list(reversed(tuples)) for tuples in inputs], []
    while any(left):
        order.append(draw(st.sampled_from([tuples for tuples in left if tuples])).pop())
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=5)))
    return [order[begin:end] for begin, end in pairwise([0, *cuts, len(order)])]


def table(batch: list[Tuple]) -> pa.Table:
    return pa.table({"number": pa.array([number for _, _, number in batch], pa.int64())})


def pushed(merge: ReadyMerge, batches: list[list[Tuple]]) -> Iterator[tuple[MergeState, list[Tuple]]]:
    """The state after each push, and what it releases."""
    state = merge.init()
    for batch in batches:
        times, inputs = (np.array([one[part] for one in batch], np.int64) for part in (0, 1))
        tagged = table(batch).append_column("time", pa.array(times)).append_column("input", pa.array(inputs))
        state, ready = merge.push(state, tagged, times, inputs)
        yield state, tuples_of(ready)


def tuples_of(ready: pa.Table) -> list[Tuple]:
    return [(row["time"], row["input"], row["number"]) for row in ready.to_pylist()]


def run(merge: ReadyMerge, batches: list[list[Tuple]]) -> list[list[Tuple]]:
    """What each push releases."""
    return [released for _, released in pushed(merge, batches)]


def naive(count: int, batches: list[list[Tuple]], rule: Ready) -> list[list[Tuple]]:
    """Each rule to the letter: every tuple is checked again after every batch."""
    came: list[Tuple] = []
    gone: set[Tuple] = set()
    released = []
    for batch in batches:
        came += batch
        newest = [max((t for t, source, _ in came if source == i), default=None) for i in range(count)]
        last = {max(one for one in came if one[1] == i) for i in range(count) if newest[i] is not None}

        def ready(one: Tuple, newest: list[int | None] = newest, last: set[Tuple] = last) -> bool:
            if any(time is None for time in newest):
                return False
            if rule is Ready.IN_ORDER:
                return all(one[:2] <= (time, source) for source, time in enumerate(newest))
            if rule is Ready.LAST_HELD:  # nor does it pass one that is held
                return not any(held <= one for held in last)
            return all(one[0] <= time for time in newest)  # type: ignore[operator]

        now = sorted(one for one in came if one not in gone and ready(one))
        gone.update(now)
        released.append(now)
    return released


@given(st.data(), streams(), st.sampled_from(Ready))
def test_each_push_releases_what_is_ready_and_nothing_else(data: st.DataObject, inputs: list[list[Tuple]], rule: Ready):
    batches = data.draw(arrivals(inputs))
    assert run(ReadyMerge(len(inputs), rule), batches) == naive(len(inputs), batches, rule)


@given(st.data(), streams())
def test_the_output_is_the_same_however_the_inputs_interleave(data: st.DataObject, inputs: list[list[Tuple]]):
    one, other = (data.draw(arrivals(inputs)) for _ in range(2))
    first, second = (list(chain(*run(ReadyMerge(len(inputs)), batches))) for batches in (one, other))
    assert first == second
    everything = sorted(one for tuples in inputs for one in tuples)
    assert first == everything[: len(first)]


@given(st.data(), streams())
def test_the_backlog_is_behind_the_slowest_input(data: st.DataObject, inputs: list[list[Tuple]]):
    for state, _ in pushed(ReadyMerge(len(inputs)), data.draw(arrivals(inputs))):
        assert all((run.times >= state.newest.min()).all() for run in state.runs)


def test_many_pushes_that_wait_are_few_runs_and_lose_nothing():
    """Input 2 speaks last: until then all that the others send waits."""
    merge = ReadyMerge(3)
    state, sent = merge.init(), [(push, source, push) for push in range(500) for source in (0, 1)]
    for push in range(500):
        batch = sent[2 * push : 2 * push + 2]
        state, ready = merge.push(state, table(batch), np.array([push, push]), np.array([0, 1]))
        assert ready.num_rows == 0
        assert len(state.runs) <= 45
    assert state.waiting == len(sent)
    state, ready = merge.push(state, table([(250, 2, 0)]), np.array([250]), np.array([2]))
    assert ready["number"].to_pylist() == [*(number for time, _, number in sent if time <= 250), 0]
    state, rest = merge.leave(state, [0, 1, 2])
    assert rest is not None
    assert rest["number"].to_pylist() == [number for time, _, number in sent if time > 250]
    assert state.runs == ()


def test_an_input_that_never_speaks_holds_all_until_it_leaves():
    merge = ReadyMerge(2)
    state, ready = merge.push(merge.init(), pa.table({"x": ["a", "b"]}), np.array([1, 2]), np.array([0, 0]))
    assert (ready.num_rows, state.waiting) == (0, 2)
    state, after = merge.leave(state, [1])
    assert after is not None
    assert after["x"].to_pylist() == ["a", "b"]
    with pytest.raises(BadInputError, match="input 1 has left, but sends row 0 with time 9"):
        merge.push(state, pa.table({"x": ["c"]}), np.array([9]), np.array([1]))


@given(st.data(), streams(), st.integers(0, 6))
def test_an_input_that_is_at_a_time_holds_nothing_older_and_may_send_nothing_older(
    data: st.DataObject, inputs: list[list[Tuple]], time: int
):
    merge = ReadyMerge(len(inputs) + 1)  # the last input sends nothing
    states = list(pushed(merge, data.draw(arrivals(inputs))))
    assert not any(released for _, released in states)
    state, ready = merge.advance(states[-1][0], [len(inputs)], time)
    out = [] if ready is None else tuples_of(ready)
    newest = [*((tuples[-1][0] if tuples else -1, source) for source, tuples in enumerate(inputs)), (time, len(inputs))]
    everything = sorted(one for tuples in inputs for one in tuples)
    assert out == [one for one in everything if all(one[:2] <= last for last in newest)]
    with pytest.raises(BadInputError, match=f"input {len(inputs)} goes backwards"):
        merge.push(state, table([(0, 0, 0)]), np.array([time - 1]), np.array([len(inputs)]))


def test_an_input_that_joins_is_waited_for():
    merge = ReadyMerge(1)
    merge, state = merge.join(merge.init(), 1)
    state, ready = merge.push(state, pa.table({"x": ["a"]}), np.array([1]), np.array([0]))
    assert ready.num_rows == 0
    state, ready = merge.push(state, pa.table({"x": ["b"]}), np.array([0]), np.array([1]))
    assert ready["x"].to_pylist() == ["b"]


def test_time_that_goes_backwards_is_an_error_that_names_input_and_row():
    merge = ReadyMerge(3)
    with pytest.raises(BadInputError, match="input 2 goes backwards: row 3 has time 4 after time 5"):
        merge.push(merge.init(), pa.table({"x": [0, 1, 2, 3]}), np.array([5, 1, 2, 4]), np.array([2, 0, 1, 2]))
    with pytest.raises(ConfigError, match="count must be at least 1"):
        ReadyMerge(0)
