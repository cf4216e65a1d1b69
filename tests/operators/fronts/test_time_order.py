"""Arrivals compared a block at a time give the same updates as one by one: the earlier of two ends a stay."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.fronts.naive import all_pairs
from tests.operators.fronts.streams import Stream, history_of, plain
from tests.oracles import dominators, skyline_mask
from tests.parameters import slow_but

from skypane.kernels.blocks import BLOCK
from skypane.kernels.influence import TIME, absorb_apart
from skypane.operators.fronts import Front, FrontContents, NewPoints, front
from skypane.operators.fronts.front_operator import DEL
from skypane.operators.fronts.grouped_fronts import LARGE, GroupedFronts
from skypane.operators.fronts.sharded_fronts import ShardedFront
from skypane.operators.fronts.shards import ShardPlan
from skypane.workloads.content.points import anticorrelated, correlated, independent


def improving(n, d, rng):
    """Points that get better in all criteria as time goes on, so that many of an older block lie above an arrival."""
    return rng.random((n, d)) - np.linspace(0, 4, n)[:, None]


def worsening(n, d, rng):
    return rng.random((n, d)) + np.linspace(0, 4, n)[:, None]


def half_improving(n, d, rng):
    points = rng.random((n, d))
    points[:, 0] -= np.linspace(0, 4, n)
    return points


def jumping(n, d, rng):
    """Each block of arrivals somewhere else, on a coarse grid with many ties."""
    level = rng.integers(-2, 3, (n // 300 + 1, 1)).repeat(300, axis=0)[:n]
    return np.round((rng.random((n, d)) + level) * 8) / 8


KINDS = [independent, anticorrelated, correlated, improving, worsening, half_improving, jumping]


def drawn(seed):
    """A stream of a few blocks; several points an instant in a third of the cases."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([BLOCK + 1, 1500, 3000])), int(rng.integers(2, 13))
    points = np.ascontiguousarray(KINDS[seed % len(KINDS)](n, d, rng))
    if rng.random() < 0.3:
        points = np.round(points * 20) / 20
    return Stream(points, np.arange(n) // int(rng.choice([1, 1, 5])), int(rng.choice([n // 8, n // 2, 4 * n])))


def told(stream, form, step):
    """All updates of a front that is stepped through the stream, and until nothing is left of it."""
    points, times, window = stream
    updates = []
    for until in range(step, int(times[-1]) + window + step + 1, step):
        rows = np.arange(*np.searchsorted(times, [until - step, until]))
        updates += plain(form.step(NewPoints(points[rows], times[rows], rows), until))
        if until > times[-1]:
            updates += plain(form.step(NewPoints(points[:0], times[:0], rows[:0]), until + window + step))
            break
    return sorted(updates)


@pytest.mark.long
@pytest.mark.parametrize("seed", slow_but(range(len(KINDS)), range(3 * len(KINDS))))
def test_every_cut_into_steps_gives_the_updates_of_the_definition(seed):
    stream = drawn(seed)
    d, window = stream.points.shape[1], stream.window
    expected = all_pairs(*stream)
    for step in (97, BLOCK + 1, 10**6):
        assert told(stream, Front(d, window), step) == expected


@pytest.mark.long
@pytest.mark.parametrize("seed", slow_but((1, 3, 5), range(len(KINDS))))
def test_shards_give_the_updates_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    stream = Stream(KINDS[seed](6_000, 5, rng), np.arange(6_000), 4_000)
    sharded = ShardedFront(FrontContents.empty(5, grouped=False), stream.window, ShardPlan(2))
    assert told(stream, sharded, 10**6) == all_pairs(*stream)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_a_history_is_the_definition(seed):
    stream = drawn(seed)
    assert history_of(stream) == all_pairs(*stream)


def test_the_first_of_two_that_dominate_a_point_ends_its_stay():
    """Two arrivals of one word: only the later one lies within the bounds of the older block in every criterion."""
    places = np.arange(BLOCK)
    far = np.column_stack([2 * places - 2 * BLOCK, 5_000 - places])  # gives ranks below those of the next block
    line = np.column_stack([places, places[::-1]])
    outside = [(column - 20, 255.5 - column / 100) for column in range(20)]
    points = np.concatenate([far, line, outside, [(200, 200)]])
    updates = told(Stream(points, np.arange(len(points)), 10_000), Front(2, 10_000), 10**6)
    first, last = 2 * BLOCK, len(points) - 1
    ended: dict[int, set[int]] = {first: set(), last: set()}
    for update in updates:
        if update.action == DEL and update.time in ended and update.row >= BLOCK:
            ended[update.time].add(update.row - BLOCK)
    assert ended == {first: set(range(256)), last: set(range(256, 312))}


def front_at(points, panes, clock, window):
    """Return the rows of the skyline of those panes that a window ending with pane clock - 1 has."""
    there = np.flatnonzero((clock - window <= panes) & (panes < clock))
    inside = points[there]
    return there[skyline_mask(inside)].tolist()


def apart(points, panes, groups):
    """Return which rows no other row of their pane and group dominates: what a pane's lift leaves."""
    alone = np.ones(len(points), bool)
    for row, (point, pane, group) in enumerate(zip(points, panes, groups, strict=True)):
        near = points[(panes == pane) & (groups == group)]
        alone[row] = not dominators(near, point).any()
    return np.flatnonzero(alone)


@pytest.mark.long
@pytest.mark.parametrize("kind", [independent, anticorrelated, half_improving], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("count", [1, 2], ids=["one group", "two groups"])
def test_panes_that_come_together_are_taken_one_time_after_the_other(kind, count, monkeypatch):
    """Windows over panes: of what one call of the kernel takes, none dominates another, for it has one time."""
    d, per_pane, window = 9, 900, 3
    rng = np.random.default_rng(len(kind.__name__))
    points = np.ascontiguousarray(kind(7 * per_pane, d, rng))
    panes, groups = np.arange(len(points)) // per_pane, rng.integers(0, count, len(points))
    which = apart(points, panes, groups)
    points, panes, groups = points[which], panes[which], groups[which]
    assert count * LARGE < len(points)

    taken = []

    def watched(slots, index, begin, end, window):
        taken.append(len(np.unique(slots.clocks[TIME, begin:end])))
        absorb_apart(slots, index, begin, end, window)

    monkeypatch.setattr(front, "absorb_apart", watched)
    arrivals = NewPoints(points, panes, np.arange(len(points)))
    clocks = [1, 3, 4, 7]  # up to three panes come at once
    if count > 1:
        found = GroupedFronts(d, window).currents(arrivals._replace(groups=groups), clocks)
    else:
        found = Front(d, window).currents(arrivals, clocks)
    for clock, rows in zip(clocks, found, strict=True):
        expected = sorted(
            int(mine[at])
            for group in range(count)
            for mine in [np.flatnonzero(groups == group)]
            for at in front_at(points[mine], panes[mine], clock, window)
        )
        assert rows.tolist() == expected
    assert taken, "the kernel was called"
    assert set(taken) == {1}
