from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from skypane.control.splitting.descriptor import PaneDescriptor, assign, send
from skypane.control.splitting.loads import least_loaded, levelled


def one_by_one(
    pane: PaneDescriptor, number: int, theta: float, tuples: int, loads: list[int]
) -> tuple[PaneDescriptor, list[int]]:
    """Send tuples as Algorithm 1 does, the queues growing with them."""
    sent = []
    for _ in range(tuples):
        pane, worker = send(pane, number, theta, loads)
        loads[worker] += 1
        sent.append(worker)
    return pane, sent


def test_algorithm_1_by_hand():
    """Three workers, theta 2. The LLW of (5, 1, 3) is worker 1, with room for two; then worker 1 and 2 are level."""
    pane, sent = one_by_one(PaneDescriptor(), 0, 2.0, 6, [5, 1, 3])
    # 1 gets two (1 -> 3). Then 1 and 2 both wait for 3 tuples, and the first is the LLW: it owns a full partition,
    # so each tuple looks for the LLW again: 1 (4), 2 (4; a partition of its own), 2 again (its room), 1 (5).
    assert sent == [1, 1, 1, 2, 2, 1]
    assert pane == PaneDescriptor(worker=1, tuples=4, sizes={2: 2})
    assert pane.partitions == 2


def test_a_worker_that_owned_the_pane_before_continues_with_its_partition():
    pane = PaneDescriptor(worker=0, tuples=5, sizes={1: 3})
    after, worker = send(pane, 0, 5, [9, 0])
    assert worker == 1
    assert after == PaneDescriptor(worker=1, tuples=4, sizes={0: 5})


def test_without_a_threshold_a_pane_has_one_owner():
    pane, sent = one_by_one(PaneDescriptor(), 0, math.inf, 20, [3, 2, 1])
    assert set(sent) == {2}
    assert pane.partitions == 1


def test_an_owner_that_was_removed_is_replaced_by_the_least_loaded_worker():
    pane = PaneDescriptor(worker=3, tuples=1)
    after, worker = send(pane, 0, 10, [4, 2])
    assert worker == 1
    assert after.partitions == 2, "what the removed worker held is a partition still"


def test_a_million_rows_are_assigned_in_few_steps():
    pane, shares = assign(PaneDescriptor(), 0, 10_000.0, 10_000_000, [0] * 60)
    assert sum(share.rows for share in shares) == 10_000_000
    assert max(share.rows for share in shares) - min(share.rows for share in shares) <= 1
    assert pane.partitions == 60


loads = st.lists(st.integers(0, 12), min_size=1, max_size=5)
panes = st.integers(-3, 7)
thetas = st.one_of(st.floats(1, 12), st.just(math.inf))


@given(loads=loads, number=panes, theta=thetas, counts=st.lists(st.integers(0, 40), max_size=4))
def test_a_whole_count_goes_where_its_tuples_would_have_gone(loads, number, theta, counts):
    pane = other = PaneDescriptor()
    for count in counts:
        after, shares = assign(other, number, theta, count, loads)
        pane, sent = one_by_one(pane, number, theta, count, loads)
        other = after
        assert other == pane
        assert {share.worker: share.rows for share in shares} == dict(Counter(sent))
        assert [share.worker for share in shares] == list(dict.fromkeys(s.worker for s in shares))


@given(loads=loads, number=panes, theta=thetas)
def test_a_batch_of_one_tuple_is_sent_as_a_tuple(loads, number, theta):
    pane = PaneDescriptor(worker=0, tuples=3)
    batch, (share,) = assign(pane, number, theta, 1, loads)
    assert (batch, share.worker) == send(pane, number, theta, loads)


@given(loads=loads, number=panes, tuples=st.integers(0, 60), data=st.data())
def test_levelling_is_to_go_to_the_least_loaded_again_and_again(loads, number, tuples, data):
    among = data.draw(st.sets(st.integers(0, len(loads) - 1), min_size=1))
    expected = dict.fromkeys(among, 0)
    for _ in range(tuples):
        worker = least_loaded([load + expected.get(w, 0) for w, load in enumerate(loads)], number, among)
        expected[worker] += 1
    assert levelled(loads, among, tuples, number) == expected


def test_equally_loaded_workers_take_panes_in_turn():
    assert [least_loaded([1, 1, 1], pane) for pane in range(-1, 4)] == [2, 0, 1, 2, 0]
    assert [least_loaded([2, 1, 1], pane) for pane in range(3)] == [1, 1, 2]
    assert least_loaded([0, 1, 1], pane=2, among=[1, 2]) == 2
