from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.plain import PlainFarm

from skypane.control.scheduling.partitions import PartitionCount
from skypane.control.splitting import AdaptiveSplitting, PaneRoundRobin, SplittingSample, TupleRoundRobin
from skypane.runtime.sim.heap import empty_heap, pop, push, replace_first
from skypane.runtime.sim.pane_farm import PaneFarm, PartitionResults
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import ConfigError
from skypane.windows import Windows

COST = np.array([0.25, 0.5, 1.0])


def stream(
    gaps: list[int], disorder: list[int], slack: int = 3, pane: int = 4, points: np.ndarray | None = None
) -> SimulatedStream:
    """Return tuples of whole seconds: gaps between events, by how much each is delayed; points in order of arrival."""
    event = np.cumsum(gaps) * 1_000_000
    arrival = event + np.array(disorder) * 1_000_000
    order = np.argsort(arrival, kind="stable")
    return SimulatedStream.of(
        Windows(pane * 1_000_000, pane * 1_000_000), event[order], arrival[order], slack * 1_000_000, points
    )


@st.composite
def streams(draw) -> SimulatedStream:
    """Streams with points and without."""
    gaps = draw(st.lists(st.integers(0, 3), min_size=1, max_size=40))
    delays = draw(st.lists(st.integers(0, 4), min_size=len(gaps), max_size=len(gaps)))
    points = None
    if draw(st.booleans()):
        points = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 4, (len(gaps), 2)).astype(float)
    return stream(gaps, delays, points=points)


def comparable(results: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return partition results as they are emitted, in order; rows as sets."""
    return sorted((*result[:5], tuple(sorted(result[5]))) for result in results)


def test_a_stream_is_closed_by_its_slack():
    """Panes of 4 s, slack 3 s: pane 0 is closed by the first tuple from second 7 on."""
    made = stream([0, 3, 3, 1, 6], [0, 0, 0, 0, 0])
    assert made.pane.tolist() == [0, 0, 1, 1, 3]
    assert made.closing.tolist() == [3, 4, 5, 5]


def test_one_worker_by_hand():
    """Tuples at 0, 0, 0 of one pane take 0.25, 0.5, 1: done at 1.75; the pane is closed when the fourth has come."""
    made = stream([0, 0, 0, 11], [0, 0, 0, 0])
    farm = PaneFarm(made, COST, workers=1)
    policy = PaneRoundRobin()
    interval = farm.advance(1.0, policy)
    assert interval.period.busy == (1.0,)
    assert interval.period.processed == (2,)
    assert interval.period.scheduled == (3,)
    assert farm.backlog == 1
    interval = farm.advance(12.0, policy)
    assert interval.period.busy == pytest.approx((1.0,))
    assert (interval.period.panes, interval.period.partitions) == (2, 2), "panes 0 and 1; nothing came for the second"
    assert interval.sample.partition_sizes == (3, 0)
    assert interval.results.time.tolist() == [11.0, 11.0]
    assert interval.results.tuples.tolist() == [3, 0]
    rest = farm.finish(policy)
    assert (rest.pane.tolist(), rest.tuples.tolist()) == ([2], [1])


POLICIES = [PaneRoundRobin(), TupleRoundRobin(), AdaptiveSplitting()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(
    made=streams(),
    workers=st.integers(1, 4),
    room=st.none() | st.integers(1, 3),
    sizes=st.lists(st.integers(1, 6), max_size=3),
    data=st.data(),
)
def test_the_compiled_farm_is_the_plain_one(policy, made, workers, room, sizes, data):
    """The same policy, tuple by tuple, gives the same results at the same times, in whatever intervals it is run; with fitted
    results and exact ones, with queues that have room for all and for few."""
    state = policy.observe(policy.init(), SplittingSample(None, tuple(sizes)))
    plain = PlainFarm(made, COST, workers, policy, state, room or math.inf)
    expected = plain.run()
    farm = PaneFarm(made, COST, workers, room=room)
    results, busy, done = [], np.zeros(workers), np.zeros(workers, int)
    end = float(made.arrival[-1])
    until = 0.0
    while until < end:
        until += data.draw(st.sampled_from([0.5, 1.0, 3.0]))
        interval = farm.advance(min(until, end), policy, state)
        results += as_tuples(interval.results)
        busy += interval.period.busy
        done += interval.period.processed
    results += as_tuples(farm.finish(policy, state))
    assert comparable(results) == comparable(expected)
    assert farm.dropped == plain.dropped
    assert sum(result[3] for result in results) == len(made.arrival) - farm.dropped
    assert (done <= [worker.done for worker in plain.workers]).all()
    assert (busy <= np.array([worker.busy for worker in plain.workers]) + 1e-9).all()


def as_tuples(results: PartitionResults) -> list[tuple[Any, ...]]:
    rows = [()] * len(results.time) if results.rows is None else [tuple(one.tolist()) for one in results.rows]
    return list(zip(*(column.tolist() for column in results[:5]), rows, strict=True))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(made=streams(), scales=st.lists(st.integers(1, 5), max_size=12), sizes=st.lists(st.integers(1, 6), max_size=3))
def test_no_partition_is_lost_or_counted_twice_while_workers_come_and_go(policy, made, scales, sizes):
    """Any sequence of ADD and REMOVE: the compiled farm gives the results that workers of messages alone give, and the
    WLQ finds each pane complete with its last partition (paper 5, Algorithm 4)."""
    state = policy.observe(policy.init(), SplittingSample(None, tuple(sizes)))
    farm, plain = PaneFarm(made, COST, workers=3, most=5), PlainFarm(made, COST, 3, policy, state)
    results, until = [], 0.0
    for workers in [*scales, *[None] * (2 * len(made.arrival) + 6)]:
        until += 1.5
        results += as_tuples(farm.advance(until, policy, state).results)
        plain.advance(until)
        if workers is not None:
            farm.scale(workers)
            plain.scale(workers, until)
        elif farm.ended:
            break
    results += as_tuples(farm.finish(policy, state))
    assert comparable(results) == comparable(plain.finish(until))
    assert farm.dropped == plain.dropped
    assert sum(tuples for _, _, _, tuples, *_ in results) == len(made.arrival) - farm.dropped
    count, complete = PartitionCount(), []
    for _, pane, _, _, counter, _ in sorted(results):
        assert pane not in complete, "a partition after the last one"
        if count.received(pane, counter):
            complete.append(pane)
    assert sorted(complete) == list(range(made.panes))


def test_a_full_queue_holds_the_source_back():
    """Two workers of one second a tuple, panes in turn; tuples of pane 0 at 1, 1, 1, one of pane 1 at 5. With room for one,
    the second and third wait for the ones before them; those behind them wait, too."""
    made = stream([1, 0, 0, 4], [0, 0, 0, 0])
    policy = PaneRoundRobin()
    for room, backlog, sent in ((None, 3, (3, 0)), (1, 3, (1, 0)), (2, 3, (2, 0))):
        farm = PaneFarm(made, np.array([1.0]), workers=2, room=room)
        interval = farm.advance(0.5, policy)
        assert interval.period.scheduled == sent
        assert farm.backlog == backlog, "those at the source wait too"
    farm = PaneFarm(made, np.array([3.0]), workers=2, room=1)
    results = farm.finish(policy)
    # Services of pane 0 end 3, 6 and 9 s after the first arrival; the last tuple is sent at 6, though it came at 4.
    assert results.time.tolist() == [9.0, 9.0]
    with pytest.raises(ConfigError, match="room must be at least one tuple, got 0"):
        PaneFarm(made, COST, 2, room=0)


@pytest.mark.parametrize(("gaps", "policy", "removed", "end", "expected"), [
    # Two workers hold pane 0; the owner, worker 1, is turned off: what it holds goes out with the counter 0, and
    # worker 0, which has a partition, owns the pane. The pane is closed at 7 with the counter 2.
    ([1, 0, 7], TupleRoundRobin(), 2.0, 9.0, [(2.0, 0, 1, 1, 0, ()), (7.0, 0, 0, 1, 2, ())]),
    # Panes 0, 1 and 3, of which the second is on worker 1 alone: worker 0 takes over with an EMPTY partition, which
    # closes with the counter 2.
    (
        [0, 5, 9], PaneRoundRobin(), 6.0, 15.0,
        [(6.0, 1, 1, 1, 0, ()), (14.0, 0, 0, 1, 1, ()), (14.0, 1, 0, 0, 2, ())],
    ),
])  # fmt: skip
def test_a_removal_by_hand(gaps, policy, removed, end, expected):
    farm = PaneFarm(stream(gaps, [0, 0, 0]), np.array([0.5]), workers=2)
    farm.advance(removed, policy)
    farm.scale(1)
    assert as_tuples(farm.advance(end, policy).results) == expected


def test_workers_may_be_turned_off_any_number_of_times_within_one_pane():
    """Two tuples a second: each time worker 1 has a partition more, and the room for messages grows."""
    made = stream([1, 0] * 40, [0] * 80, pane=1_000)
    policy = TupleRoundRobin()
    farm, results = PaneFarm(made, np.array([0.1]), workers=2), []
    for second in range(1, 40):
        results += as_tuples(farm.advance(second + 0.5, policy).results)
        farm.scale(1 + second % 2)
    results += as_tuples(farm.finish(policy))
    assert sum(tuples for _, _, _, tuples, *_ in results) == 80
    assert sum(counter == 0 for *_, counter, _ in results) > 8
    assert results[-1][4] == len(results)


def test_the_same_run_twice_is_the_same():
    rng = np.random.default_rng(0)
    event = np.cumsum(rng.integers(0, 200, 20_000))
    made = SimulatedStream.of(Windows(20_000, 20_000), event, event, 1_000)
    runs = [PaneFarm(made, np.array([1e-4]), 3) for _ in range(2)]
    first, second = (farm.advance(1.0, TupleRoundRobin()) for farm in runs)
    assert first.period == second.period
    assert np.array_equal(first.results.time, second.results.time)


@pytest.mark.long
@given(st.lists(st.tuples(st.sampled_from(["push", "pop", "replace"]), st.integers(0, 5)), max_size=60))
def test_the_heap_is_first_come_first_served_among_equals(steps):
    heap = empty_heap(64)
    expected: list[tuple[float, int, int]] = []
    sequence = 0
    for kind, at in steps:
        if kind != "push" and expected:
            assert (heap.time[0], heap.item[0]) == (expected[0][0], expected[0][2])
            heapq.heappop(expected)
            if kind == "pop":
                pop(*heap)
        elif kind != "push":
            continue
        if kind == "replace":
            replace_first(*heap, float(at), sequence)
        elif kind == "push":
            push(*heap, float(at), sequence)
        if kind != "pop":
            heapq.heappush(expected, (float(at), sequence, sequence))
            sequence += 1
    assert heap.use[0] == len(expected)


@pytest.mark.parametrize(("make", "message"), [
    (lambda farm: farm.advance(0.0, PaneRoundRobin()), "until must be later than the current time"),
    (lambda farm: farm.scale(3), "need 1 <= workers <= 2, got 3"),
])  # fmt: skip
def test_what_a_farm_cannot_do_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make(PaneFarm(stream([1, 1], [0, 0]), COST, 2))


@pytest.mark.slow
def test_ten_million_events_a_second():
    """An event is an arrival or the end of a service; on one core."""
    tuples = 5_000_000
    rng = np.random.default_rng(0)
    event = np.cumsum(rng.integers(0, 20, tuples))  # 10 us apart: 100K tuples a second
    made = SimulatedStream.of(Windows(100_000, 100_000), event, event, 10_000)
    policy = AdaptiveSplitting()
    state = policy.observe(policy.init(), SplittingSample(None, (5_000,)))
    best = 0.0
    for _ in range(3):
        farm = PaneFarm(made, np.array([65e-6]), 8)
        began = time.perf_counter()
        farm.advance(float(made.arrival[-1]) + 1, policy, state)
        best = max(best, 2 * tuples / (time.perf_counter() - began))
    assert best > 10e6
