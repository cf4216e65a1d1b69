"""Each step of the comparison within many small groups, against a naive definition."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_influence import assert_times_of_all_pairs

from skypane.kernels import influence_groups as steps
from skypane.kernels.influence import END, START
from skypane.kernels.small_groups import room_for

WINDOW = 25


@pytest.fixture(params=range(5))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def encoded(pairs: list[tuple[int, int]]) -> steps.Members:
    """Return the sorted members of these groups and slots."""
    return np.array([group << 32 | slot for group, slot in sorted(pairs)], np.uint64)


def arrived(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points on a coarse grid, with columns for the kernel, and their clocks before any comparison."""
    points = steps.empty_points(n, d)
    points[:, :d] = rng.integers(0, 5, (n, d))
    times = np.sort(rng.integers(0, 60, n))
    return points, np.array([times, times, times + WINDOW])


def test_members_are_in_order_of_group_and_slot(rng):
    groups = rng.integers(0, 4, 30)
    members = steps.members_of(groups, 100)
    assert members.tolist() == encoded([(g, 100 + i) for i, g in enumerate(groups.tolist())]).tolist()
    assert steps.groups_of(members).tolist() == sorted(groups.tolist())
    assert sorted(steps.slots_of(members).tolist()) == list(range(100, 130))


def test_merged_members_are_sorted(rng):
    every = rng.permutation(1_000)[:40].astype(np.uint64)
    merged = steps._merged(np.sort(every[:25]), np.sort(every[25:]))
    assert merged.tolist() == sorted(every.tolist())


def test_the_longest_group_is_counted(rng):
    groups = rng.integers(0, 6, 50)
    assert steps._longest(steps.members_of(groups, 0)) == np.bincount(groups).max()


def test_gathered_columns_hold_the_points_of_the_span(rng):
    points, _ = arrived(rng, 40, 5)
    members = steps.members_of(rng.integers(0, 3, 40), 0)
    few = room_for(40, 5)
    steps._gather(points, members, (7, 29), few)
    slots = steps.slots_of(members[7:29])
    assert few.names[:22].tolist() == slots.tolist()
    assert few.columns.reshape(-1, few.stride)[:, :22].T.tolist() == points[slots].tolist()


def test_members_whose_stay_ends_before_the_clock_leave(rng):
    clocks = np.tile(rng.integers(0, 10, 20), (3, 1))
    members = steps.members_of(rng.integers(0, 3, 20), 0)
    left = steps.members_at(clocks, members, 5)
    assert left.tolist() == [m for m in members.tolist() if clocks[END, m & 0xFFFFFFFF] >= 5]


def test_members_move_together_in_the_order_of_their_slots(rng):
    points, clocks = arrived(rng, 20, 3)
    rows = np.arange(20) * 10
    kept = np.sort(rng.permutation(20)[:8])
    groups = rng.integers(0, 3, 8)
    members = encoded(list(zip(groups.tolist(), kept.tolist(), strict=True)))
    before = points.copy(), clocks.copy()
    steps.move_together(points, clocks, rows, members)
    assert members.tolist() == encoded([(g, at) for at, g in enumerate(groups.tolist())]).tolist()
    assert rows[:8].tolist() == (kept * 10).tolist()
    assert points[:8].tolist() == before[0][kept].tolist()
    assert clocks[:, :8].tolist() == before[1][:, kept].tolist()


def test_rows_of_the_front_are_those_whose_stay_contains_the_clock(rng):
    clocks = rng.integers(0, 10, (3, 60))
    expected = [s for s in range(60) if clocks[START, s] < 5 <= clocks[END, s] and clocks[START, s] < clocks[END, s]]
    assert steps.rows_at(clocks, np.arange(60), 5).tolist() == expected


@pytest.mark.parametrize("parts", [(90,), (1, 40, 90), tuple(range(1, 91))])
def test_the_times_of_groups_are_those_of_all_pairs(rng, parts):
    points, clocks = arrived(rng, 90, 3)
    groups = rng.integers(0, 3, 90)
    members = steps.NO_MEMBERS
    begin = 0
    for end in parts:
        coming = steps.members_of(groups[begin:end], begin)
        members = steps.absorb_members(points[:end], clocks[:, :end], members, coming, WINDOW)
        begin = end
    below = (points[:, None] <= points).all(axis=2) & (groups[:, None] == groups)
    assert_times_of_all_pairs(clocks, below & ~below.T, WINDOW)
