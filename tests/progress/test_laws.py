"""What holds for every policy, whatever the stream."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import PANE, arrivals, batches, steps

from skypane.progress import AqKSlack, KSlack, PaneArrivals, Readiness, Watermark
from skypane.types import CheckpointError

POLICIES = [
    Watermark("20 microseconds", max_ahead="1000 us"),
    KSlack(max_ahead="1000 us"),
    KSlack(max_slack="60 us", max_ahead="1000 us"),
    AqKSlack(0.3, reserve=1, max_slack="100 us", max_ahead="1000 us"),
    AqKSlack(0.3, max_ahead="1000 us"),
    AqKSlack(max_amended=0.3, reserve=1, max_slack="100 us", max_ahead="1000 us"),
    Readiness("100 us", max_ahead="1000 us"),
]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)


@pytest.mark.long
@every_policy
@given(stream=batches())
def test_progress_never_goes_back(policy, stream):
    before = None
    for state in steps(policy, stream):
        if before is not None:
            assert state.punctuation >= before.punctuation
            assert state.newest >= before.newest
        assert state.punctuation <= state.newest
        before = state


@pytest.mark.long
@every_policy
@given(stream=batches())
def test_counts_are_those_of_the_rows(policy, stream):
    seen = dropped = 0
    closed = None
    for state, times in zip(steps(policy, stream), stream, strict=True):
        seen += len(times)
        dropped += sum(closed is not None and (time // PANE + 1) * PANE <= closed for time in times)
        assert (state.seen, state.dropped) == (seen, dropped)
        closed = state.punctuation


@pytest.mark.long
@every_policy
@given(stream=batches())
def test_snapshot_and_restore_at_every_step_gives_the_same_run(policy, stream):
    expected = steps(policy, stream)
    state = policy.init()
    for times, after in zip(stream, expected, strict=True):
        state = policy.restore(json.loads(json.dumps(policy.snapshot(state))))
        state = policy.decide(state, arrivals(times))[0]
        assert state == after


@pytest.mark.long
@every_policy
@given(stream=batches(), ahead=st.integers(3_000, 2**50))
def test_a_tuple_far_in_the_future_moves_nothing(policy, stream, ahead):
    state = with_bad_clock = policy.init()
    for times in stream:
        state = policy.decide(state, arrivals([*times, *times]))[0]
        bad = max(*times, state.newest) + ahead
        batch = arrivals([*times, *times, bad])  # so that it is never half of the first batch
        with_bad_clock = policy.decide(with_bad_clock, batch)[0]
        assert with_bad_clock.held.rows > 0
        assert with_bad_clock.newest == state.newest
        assert with_bad_clock.seen == state.seen
        assert with_bad_clock.punctuation <= with_bad_clock.newest


@pytest.mark.long
@every_policy
@given(stream=batches(), gap=st.integers(2_000, 2**50), cut=st.integers(1, 200))
def test_a_pausing_stream_loses_no_row_however_it_is_cut(policy, stream, gap, cut):
    """Rows of the last batch before the pause and of the first one after it may share a batch."""
    before = [time for times in stream for time in times]
    after = [time + gap + 5_000 for time in before]
    times = [*before, *after, *[max(after)] * policy.support]
    state = steps(policy, [times[at : at + cut] for at in range(0, len(times), cut)])[-1]
    assert state.abandoned == 0
    if cut < len(before):  # else what comes before the pause and after it is one batch, and half of the rows
        assert (state.held.rows, state.seen) == (0, len(times))
        assert state.newest >= min(after)


@pytest.mark.long
@every_policy
@given(stream=batches(), data=st.data())
def test_a_line_explains_every_state(policy, stream, data):
    state = data.draw(st.sampled_from([policy.init(), *steps(policy, stream)]))
    line = policy.explain(state)
    assert line
    assert "\n" not in line
    assert all(isinstance(value, int | float) for value in policy.figures(state).values())


@every_policy
def test_a_stream_continues_after_a_long_pause(policy):
    state = steps(policy, [[1_000, 1_005]] * 3)[-1]
    later = 10**9
    for _ in range(policy.support):
        state = policy.decide(state, arrivals([later]))[0]
    assert state.newest == later
    assert state.punctuation > 10**8


@every_policy
def test_a_batch_without_rows_changes_nothing(policy):
    state = policy.init()
    assert policy.decide(state, PaneArrivals.none())[0] == state
    assert state.punctuation is None
    state = policy.decide(state, arrivals([1_000, 1_050]))[0]
    assert policy.decide(state, PaneArrivals.none())[0] == state


@every_policy
def test_a_snapshot_of_an_earlier_version_is_read(policy):
    snapshot = policy.snapshot(replace(policy.init(), abandoned=3))
    snapshot["given_up"] = snapshot.pop("abandoned")
    assert policy.restore(snapshot).abandoned == 3


@every_policy
def test_policies_are_values(policy):
    assert policy == replace(policy)
    assert policy.describe() == replace(policy).describe()
    assert json.loads(json.dumps(policy.describe())) == policy.describe()
    assert policy.describe() != replace(policy, support=7).describe()
    with pytest.raises(FrozenInstanceError):
        policy.support = 1


@every_policy
@pytest.mark.parametrize("change", [{"more": 1}, {"seen": "7"}, {"seen": None}, {"newest": 1.5}, {"dropped": True}])
def test_a_snapshot_that_is_none_is_refused(policy, change):
    snapshot = policy.snapshot(policy.init())
    with pytest.raises(CheckpointError, match="in the checkpoint: "):
        policy.restore({**snapshot, **change})
    with pytest.raises(CheckpointError, match="in the checkpoint: "):
        policy.restore({name: value for name, value in snapshot.items() if name != "seen"})
