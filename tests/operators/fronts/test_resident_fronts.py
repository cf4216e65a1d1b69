"""Shards that stay in the process return the updates of a whole front, in threads and evenly loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts.streams import plain

from skypane.operators.fronts import Front, FrontContents, GroupedFronts, NewPoints
from skypane.operators.fronts import resident_fronts as module
from skypane.operators.fronts.resident_fronts import ResidentFront, ResidentGroups, owned_runs
from skypane.operators.fronts.shards import ShardPlan
from skypane.workloads.content.points import anticorrelated


def test_many_points_in_threads_store_what_one_front_stores_evenly():
    rng = np.random.default_rng(2)
    points, times = anticorrelated(40_000, 4, rng), np.arange(40_000) // 3  # several at one instant
    alone = Front(4, 8_000)
    with ThreadPoolExecutor(3) as threads:
        shared = ResidentFront(FrontContents.empty(4, grouped=False), 8_000, ShardPlan(3, in_place=threads.map))
        for first in range(0, 40_000, 5_000):
            rows = rng.permutation(5_000) + first  # numbers in no order of time
            arrivals = NewPoints(points[first : first + 5_000], times[first : first + 5_000], rows)
            until = int(arrivals.times[-1]) + 1 if first == 35_000 else int(times[first + 5_000])
            arrivals = arrivals.at(arrivals.times < until)
            shared.rescale(ShardPlan(3 if first < 20_000 else 2, in_place=threads.map))
            assert plain(shared.step(arrivals, until)) == plain(alone.step(arrivals, until))
            assert shared.kept().tolist() == alone.kept().tolist()
            sizes = [len(shard) for shard in shared._shards]
            assert len(sizes) == shared.shards
            assert max(sizes) - min(sizes) <= len(alone) // (5 if first else 3)  # nothing balances the first step


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_more_arrivals_in_a_step_than_a_shard_has_room_for(shards: int):
    """Points that enter and leave within the step are discarded to make room before their starts are known."""
    rng = np.random.default_rng(3)
    points, times = anticorrelated(60_000, 4, rng), np.arange(60_000)
    alone = Front(4, 4_000)
    shared = ResidentFront.restore(FrontContents.empty(4, grouped=False), 4_000, ShardPlan(shards, in_place=map))
    for first in (0, 30_000):
        arrivals = NewPoints(points[first:], times[first:], times[first:]).at(slice(30_000))
        assert plain(shared.step(arrivals, first + 30_000)) == plain(alone.step(arrivals, first + 30_000))
    assert shared.kept().tolist() == alone.kept().tolist()


def test_groups_that_grow_are_divided_again_by_their_sizes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_GROWN", 100)
    rng = np.random.default_rng(4)
    points, times = anticorrelated(4_000, 4, rng), np.arange(4_000)
    groups = np.where(
        times % 2 == 0, 0, times % 8
    )  # the first has half of the points; in turn it would share its shard
    alone, shared = (
        GroupedFronts(4, 10_000),
        ResidentGroups(FrontContents.empty(4, grouped=True), 10_000, ShardPlan(2, in_place=map)),
    )
    for first in range(0, 4_000, 500):
        arrivals = NewPoints(points, times, times, groups).at(slice(first, first + 500))
        assert plain(shared.step(arrivals, first + 500)) == plain(alone.step(arrivals, first + 500))
    assert sorted(shared._owners.tolist()[:8]).count(0) in (1, 7)
    sizes = [len(shard) for shard in shared._shards]
    assert max(sizes) < 0.6 * sum(sizes)


@given(st.integers(0, 200), st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_arrivals_go_to_the_smallest_shards(n: int, sizes: list[int]):
    """Each is in one run, and no shard that gets some is larger afterwards than another by more than one."""
    runs = owned_runs(n, sizes)
    assert sorted(row for shard in runs for run in shard for row in range(*run)) == list(range(n))
    after = [size + sum(last - first for first, last in own) for size, own in zip(sizes, runs, strict=True)]
    grown = [size for size, before in zip(after, sizes, strict=True) if size > before]
    assert max(grown, default=0) <= min(after) + 1


def test_each_shard_stores_an_early_run_of_the_arrivals_and_a_late_one():
    assert owned_runs(12, [0, 0, 0]) == [((0, 2), (10, 12)), ((2, 4), (8, 10)), ((4, 6), (6, 8))]
    assert owned_runs(5, [3, 0]) == [((2, 2), (2, 3)), ((0, 2), (3, 5))]
