"""No partition is lost or counted twice, whatever workers come and go (paper 5, Algorithm 4)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.plain import Item, Worker

from skypane.control.scheduling.events import PaneResult
from skypane.control.scheduling.partitions import (
    Close,
    Empty,
    Message,
    PaneDirectory,
    PartitionCount,
    Tuple,
    TurnOff,
    UpdateCount,
)


def taken_by(worker: Worker) -> list[tuple[int, int, int]]:
    """Let a worker take one message; return (pane, tuples, counter) of each partition that it closes."""
    message = worker.queue.popleft()
    assert not isinstance(message, Item)
    if isinstance(message, Tuple):
        worker.counters.setdefault(message.pane, message.counter)
        worker.taken[message.pane] = worker.taken.get(message.pane, 0) + 1
    return [partition[:3] for partition in worker.processed_message(message)]


def test_a_pane_split_in_two_by_hand():
    panes = PaneDirectory(0, [0, 1])
    assert panes.sent(0, 1) == [Tuple(1, 0, 1)]
    assert panes.sent(0, 1) == [Tuple(1, 0, 1)]
    assert panes.sent(0, 0) == [Tuple(0, 0, 2), UpdateCount(1, 0, 2)]
    assert panes.close(1, [0, 0]) == [Close(0, 1), Close(1, 1)]


def test_an_owner_that_is_turned_off_by_hand():
    panes = PaneDirectory(0, [0, 1, 2])
    panes.sent(0, 2)
    panes.sent(0, 0)
    assert panes.remove([0], [9, 5, 7]) == [TurnOff(0), Empty(1, 0, 3), UpdateCount(2, 0, 3)]
    panes.sent(1, 2)
    assert panes.remove([1], [9, 5, 7]) == [TurnOff(1)], "worker 2 has a partition of pane 0, and owns it now"


def test_a_pane_without_tuples_is_closed_too():
    panes = PaneDirectory(5, [0, 1])
    assert panes.close(6, [3, 2]) == [Empty(1, 5, 1), Close(0, 6), Close(1, 6)]


def test_workers_get_close_messages_in_their_order():
    assert PaneDirectory(0, [8, 1]).close(0, [0] * 9) == [Close(1, 0), Close(8, 0)]


def test_results_default_to_a_pane_of_one_partition():
    assert PaneResult(1, 2).counter == 1


def test_a_forced_close_leaves_the_count_open():
    count = PartitionCount()
    assert not count.received(3, 0)
    assert not count.is_complete(3)
    assert count.received(3, 2)
    assert count.is_complete(3)


WORKERS = 4
steps = st.lists(
    st.one_of(
        st.tuples(st.just("tuple"), st.integers(0, 3), st.integers(0, WORKERS - 1)),
        st.tuples(st.just("close"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("remove"), st.sets(st.integers(0, WORKERS - 1), min_size=1), st.just(0)),
        st.tuples(st.just("add"), st.sets(st.integers(0, WORKERS - 1), min_size=1), st.just(0)),
    ),
    max_size=60,
)


class Stage:
    """An emitter, its workers, who take their messages in any interleaving, and the count at the other end."""

    def __init__(self, order) -> None:
        self.order = order
        self.panes, self.workers = PaneDirectory(0, range(WORKERS)), [Worker() for _ in range(WORKERS)]
        self.count = PartitionCount()
        self.complete: set[int] = set()
        self.first = 0
        self.sent: Counter[int] = Counter()
        self.counted: Counter[int] = Counter()

    @property
    def loads(self) -> list[int]:
        return [len(worker.queue) for worker in self.workers]

    def take(self, kind: str, what, who: int) -> None:
        if kind == "tuple":
            self.sent[self.first + what] += 1
            active = sorted(self.panes.active)
            self.tell(self.panes.sent(self.first + what, active[who % len(active)]))
        elif kind == "close":
            self.first += what
            self.tell(self.panes.close(self.first, self.loads))
        elif kind == "add":
            self.panes.add(what)
        elif self.panes.active - what:
            self.tell(self.panes.remove(what, self.loads))

    def tell(self, messages: list[Message]) -> None:
        for message in messages:
            self.workers[message.worker].queue.append(message)

    def work(self, *, all_of_it: bool) -> None:
        while waiting := [worker for worker in self.workers if worker.queue]:
            if not all_of_it and self.order.random() < 0.3:
                return
            for pane, tuples, counter in taken_by(self.order.choice(waiting)):
                assert pane not in self.complete, "a result after the last one"
                self.counted[pane] += tuples
                if self.count.received(pane, counter):
                    self.complete.add(pane)


@given(steps=steps, order=st.randoms(use_true_random=False))
def test_every_partition_is_counted_once_whatever_comes_and_goes(steps, order):
    stage = Stage(order)
    for step in steps:
        stage.take(*step)
        stage.work(all_of_it=False)
    stage.take("close", 4, 0)
    stage.work(all_of_it=True)
    assert stage.complete == set(range(stage.first))
    assert +stage.counted == stage.sent


@pytest.mark.parametrize("pane", [1, 5])
def test_forgotten_panes_are_not_complete(pane):
    count = PartitionCount()
    count.received(pane, 1)
    count.forget_below(6)
    assert not count.is_complete(pane)
