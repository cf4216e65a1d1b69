"""A front in shards tells what a front tells, whatever the number of shards, and keeps them evenly loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts import naive
from tests.operators.fronts.streams import plain, streams

from skypane.operators.fronts import Front, NewPoints
from skypane.operators.fronts.shards import ShardedFront, _least_loaded, _runs, answer
from skypane.types import BadInputError
from skypane.workloads.content.points import anticorrelated

steps = st.lists(st.tuples(st.integers(-60, 400), st.integers(1, 4)), max_size=6)


@given(streams(), steps, st.randoms(use_true_random=False))
def test_any_number_of_shards_in_each_step_tells_the_definition(stream, cuts, random):
    points, times, window = stream
    front = ShardedFront(points.shape[1], window)
    end = int(times.max(initial=0)) + window + 1
    updates = []
    for until, shards in [*sorted(cut for cut in cuts if cut[0] < end), (end, 3)]:
        rows = np.flatnonzero((front.clock <= times) & (times < until))
        rows = np.array(random.sample(rows.tolist(), len(rows)), np.int64)
        updates += plain(front.step(NewPoints(points[rows], times[rows], rows), until, shards))
    assert updates == naive.updates(*stream)
    assert len(front) == 0


def test_many_points_through_threads_store_what_one_front_stores_evenly():
    rng = np.random.default_rng(2)
    points, times = anticorrelated(30_000, 4, rng), np.arange(30_000)  # thousands are stored: blocks fill
    alone = Front(4, 8_000)
    with ThreadPoolExecutor(3) as threads:
        at_once = partial(threads.map, answer)
        shared = ShardedFront(4, 8_000)
        for first in range(0, 30_000, 5_000):
            some = slice(first, first + 5_000)
            arrivals = NewPoints(points[some], times[some], times[some])
            shards = 3 if first < 20_000 else 2
            assert plain(shared.step(arrivals, first + 5_000, shards, at_once)) == plain(
                alone.step(arrivals, first + 5_000)
            )
            assert len(shared) == len(alone)
            loads = [len(shard.rows) for shard in shared.shards]
            assert max(loads) - min(loads) <= 1 + len(alone) // 10


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_more_arrivals_in_a_step_than_a_shard_has_room_for(shards: int):
    """Those that visit a shard go through the room that it has left: 8,192 points and more."""
    rng = np.random.default_rng(3)
    points, times = anticorrelated(30_000, 4, rng), np.arange(30_000)
    arrivals = NewPoints(points, times, times)
    alone, shared = Front(4, 4_000), ShardedFront(4, 4_000)
    assert plain(shared.step(arrivals, 30_000, shards)) == plain(alone.step(arrivals, 30_000))
    assert len(shared) == len(alone)


def test_each_shard_stores_an_early_run_of_the_arrivals_and_a_late_one():
    assert _runs(13, 3) == [((0, 2), (10, 13)), ((2, 4), (8, 10)), ((4, 6), (6, 8))]


def test_owners_are_the_least_loaded_when_their_turn_comes():
    assert _least_loaded(np.array([2, 0, 1]), 6).tolist() == [1, 1, 2, 0, 1, 2]
    assert _least_loaded(np.array([5, 5]), 0).tolist() == []


def test_a_step_that_is_refused_leaves_the_shards_as_they_were():
    front = ShardedFront(1, 10)
    front.step(NewPoints(np.array([[1.0]]), np.array([3]), np.array([0])), 5, 2)
    with pytest.raises(BadInputError, match=r"times must be in \[5, 9\)"):
        front.step(NewPoints(np.array([[1.0]]), np.array([4]), np.array([1])), 9, 3)
    assert (len(front), len(front.shards)) == (1, 2)
