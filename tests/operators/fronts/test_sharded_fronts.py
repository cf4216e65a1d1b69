"""A front in any number of shards returns the updates of a whole front, and keeps the shards evenly loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from tests.operators.fronts.streams import plain

from skypane.operators.fronts import Front, FrontContents, NewPoints
from skypane.operators.fronts.sharded_fronts import ShardedFront, _least_loaded, _runs
from skypane.operators.fronts.shards import ShardPlan, compare_in_shard
from skypane.workloads.content.points import anticorrelated


def test_many_points_through_threads_store_what_one_front_stores_evenly():
    rng = np.random.default_rng(2)
    points, times = anticorrelated(30_000, 4, rng), np.arange(30_000)  # thousands are stored: blocks fill
    alone = Front(4, 8_000)
    with ThreadPoolExecutor(3) as threads:
        at_once = partial(threads.map, compare_in_shard)
        shared = ShardedFront(FrontContents.empty(4, grouped=False), 8_000, ShardPlan(3, at_once))
        for first in range(0, 30_000, 5_000):
            some = slice(first, first + 5_000)
            arrivals = NewPoints(points[some], times[some], times[some])
            shared.rescale(ShardPlan(3 if first < 20_000 else 2, at_once))
            assert plain(shared.step(arrivals, first + 5_000)) == plain(alone.step(arrivals, first + 5_000))
            assert len(shared) == len(alone)
            loads = [len(shard.rows) for shard in shared.parts]
            assert max(loads) - min(loads) <= 1 + len(alone) // 10


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_more_arrivals_in_a_step_than_a_shard_has_room_for(shards: int):
    """Those that visit a shard go through the room that it has left: 8,192 points and more."""
    rng = np.random.default_rng(3)
    points, times = anticorrelated(30_000, 4, rng), np.arange(30_000)
    arrivals = NewPoints(points, times, times)
    alone = Front(4, 4_000)
    shared = ShardedFront(FrontContents.empty(4, grouped=False), 4_000, ShardPlan(shards))
    assert plain(shared.step(arrivals, 30_000)) == plain(alone.step(arrivals, 30_000))
    assert len(shared) == len(alone)


def test_each_shard_stores_an_early_run_of_the_arrivals_and_a_late_one():
    assert _runs(13, 3) == [((0, 2), (10, 13)), ((2, 4), (8, 10)), ((4, 6), (6, 8))]


def test_owners_are_the_least_loaded_when_their_turn_comes():
    assert _least_loaded(np.array([2, 0, 1]), 6).tolist() == [1, 1, 2, 0, 1, 2]
    assert _least_loaded(np.array([5, 5]), 0).tolist() == []
