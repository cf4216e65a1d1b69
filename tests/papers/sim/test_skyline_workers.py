"""Paper 4's parallel algorithm, message by message, under any interleaving: the updates of the sequential one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts.eager import Eager, Update, net
from tests.papers.sim.skyline_workers import NEVER, Arrival, Worker, run

from skypane.operators.fronts.front_operator import ADD, DEL


@st.composite
def arrivals(draw, workers):
    n = draw(st.integers(0, 14))
    values = st.tuples(*[st.integers(0, 3).map(float)] * draw(st.integers(1, 3)))
    gaps = draw(st.lists(st.sampled_from([1, 1, 2, 5, 10, 11]), min_size=n, max_size=n))
    times = [sum(gaps[: i + 1]) for i in range(n)]
    return [Arrival(row, draw(values), time, draw(st.integers(0, workers - 1))) for row, time in enumerate(times)]


def sequential(stream, window):
    eager = Eager(window)
    updates: list[Update] = []
    for arrival in stream:
        updates += eager.arrive(arrival.values, arrival.time, arrival.row)
    return net([*updates, *eager.advance(2**62)])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
@given(st.data(), st.integers(1, 4), st.integers(0, 2**32))
def test_any_interleaving_emits_the_updates_of_the_sequential_algorithm(asynchronous, data, workers, seed):
    stream = data.draw(arrivals(workers))
    chance = random.Random(seed)
    emitted = list(run(stream, 10, workers, chance.choice, asynchronous=asynchronous))
    assert [update.time for update in emitted] == sorted(update.time for update in emitted)
    assert net(emitted) == sequential(stream, 10), "stays of no length left out"


def resolved(sit: int, pruner: int | None) -> list[Update]:
    """What comes of a point that arrives at 1, is pruned at `pruner`, and whose reduce ends at 9 with `sit`; window 10."""
    worker = Worker(0, 10)
    worker.receive(Arrival(0, (2.0,), 1, owner=0))
    if pruner is not None:
        worker.receive(Arrival(1, (1.0,), pruner, owner=1))
    worker.advance(9)
    assert worker.release() == ([], 0), "nothing may be emitted while it is pending"
    worker.resolve(0, sit)
    worker.advance(20)
    return worker.release()[0]


@pytest.mark.parametrize(
    ("sit", "pruner", "updates"),
    [
        (NEVER, None, [Update(1, ADD, 0), Update(11, DEL, 0)]),
        (4, None, [Update(4, ADD, 0), Update(11, DEL, 0)]),
        (10, None, [Update(10, ADD, 0), Update(11, DEL, 0)]),
        (4, 6, [Update(4, ADD, 0), Update(6, DEL, 0)]),
        (6, 6, []),
        (8, 6, []),
    ],
    ids=["never dominated", "no pruner", "enters later", "pruned after it entered", "as it enters", "before it enters"],
)
def test_the_three_cases_of_a_reduce_that_ends_later(sit, pruner, updates):
    assert resolved(sit, pruner) == updates


def test_an_update_waits_for_the_oldest_point_that_is_pending_not_for_the_one_that_is_resolved():
    """By the influence time of the point resolved, 11, the DEL at 8 would go before the ADD at 3 that is yet to come."""
    worker = Worker(0, 10)
    worker.receive(Arrival(0, (9.0, 1.0), 0, owner=0))
    worker.resolve(0, NEVER)
    worker.receive(Arrival(1, (5.0, 5.0), 2, owner=0))
    worker.receive(Arrival(2, (1.0, 9.0), 3, owner=0))
    worker.receive(Arrival(3, (8.0, 0.0), 8, owner=1))  # prunes 0
    worker.resolve(1, 11)
    assert worker.release() == ([Update(0, ADD, 0)], 2)
    worker.resolve(2, NEVER)
    assert worker.release() == ([Update(3, ADD, 2), Update(8, DEL, 0)], 8)
