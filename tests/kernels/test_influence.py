"""Each step of the comparison of arrivals with stored points, against a naive definition over all pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from tests.oracles import dominates

from skypane.kernels import influence as steps
from skypane.kernels.blocks import BLOCK
from skypane.kernels.influence import END, START, TIME
from skypane.kernels.simd import LANES
from skypane.kernels.tiles import put_ranks

D, WINDOW = 3, 10_000


def lanes(which: Iterable[int]) -> np.uint64:
    """Return the mask of these lanes of a word."""
    return np.uint64(sum(1 << lane for lane in which))


def members(words: np.ndarray) -> set[int]:
    """Return the numbers of the bits that are set."""
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


@pytest.fixture(params=range(3))
def stored(request: pytest.FixtureRequest) -> tuple[steps.PointSlots, steps.SlotIndex]:
    """A full block of present points on a coarse grid, and arrivals in the slots of the next block."""
    rng = np.random.default_rng(request.param)
    slots, index = steps.empty_slots(2 * BLOCK, D), steps.empty_index(2 * BLOCK, D)
    slots.ranks[:] = rng.integers(60, 70, slots.ranks.shape) + 4 * rng.integers(0, 3, (2 * BLOCK, 1))
    slots.points[:] = slots.ranks
    slots.clocks[[TIME, START]] = np.arange(2 * BLOCK)
    slots.clocks[END] = slots.clocks[TIME] + WINDOW
    steps.rebuild(slots, index, BLOCK)
    return slots, index


def arriving(slots: steps.PointSlots, n: int) -> steps.ArrivingPoints:
    """Return n arrivals of which none has a dominator yet."""
    arrivals = steps._arrivals(D, WINDOW)
    for lane in range(n):
        put_ranks(arrivals.tiles, lane, slots.ranks, BLOCK + lane)
        arrivals.going[lane // LANES] |= np.uint64(1 << lane % LANES)
    return arrivals


def test_a_slot_dominates_those_lanes_that_all_its_values_are_at_most(stored):
    slots, _ = stored
    given = set(range(0, LANES, 3))
    for s in range(BLOCK, BLOCK + 60):
        expected = {lane for lane in given if dominates(slots.points[s], slots.points[LANES + lane])}
        assert members(np.array([steps._dominated_by(slots.points, 1, lanes(given), s)])) == expected


def test_a_stay_that_has_ended_earlier_is_not_prolonged():
    clocks = np.array([[0, 0], [0, 0], [3, 9]])
    steps._end_stays(clocks, 0, lanes([0, 1]), 5)
    assert clocks[END].tolist() == [3, 5]


def test_the_youngest_dominator_and_a_twin_are_found(stored):
    slots, _ = stored
    for s in range(BLOCK, BLOCK + 60):
        below = [lane for lane in range(LANES) if (slots.points[lane] <= slots.points[s]).all()]
        better = [lane for lane in below if dominates(slots.points[lane], slots.points[s])]
        same = sorted(set(below) - set(better))
        assert steps._youngest_dominator(slots.points, 0, lanes(below), s) == max(better, default=-1)
        assert steps._twin(slots.points, 0, lanes(below), s) == min(same, default=-1)


def test_the_bounds_of_a_block_are_its_least_and_greatest_ranks(stored):
    slots, index = stored
    assert index.bounds[0].tolist() == slots.ranks[:BLOCK].min(axis=0).tolist()
    assert index.bounds[1].tolist() == slots.ranks[:BLOCK].max(axis=0).tolist()


def test_the_first_block_is_that_of_the_oldest_slot_in_the_window(stored):
    slots, _ = stored
    for window in (1, 88, 89, 500, 5_000):
        inside = np.flatnonzero(slots.clocks[TIME] + window > slots.clocks[TIME, 600])
        assert steps._first_block(slots, 600, 600, window) == inside[0] // BLOCK


def compared(slots: steps.PointSlots, present: set[int], n: int, *, stored: bool) -> tuple[np.ndarray, set[int]]:
    """Return the clocks after n arrivals from slot BLOCK on, in order of time, and the arrivals that are compared on.

    `present` loses the points that an arrival prunes. With `stored`, it gains the arrivals; without, an arrival that
    equals a present point is not compared on, because the start of that point is its own.
    """
    clocks, going = slots.clocks.copy(), set()
    for arrival in range(n):
        s = BLOCK + arrival
        better = [p for p in present if dominates(slots.points[p], slots.points[s])]
        worse = [p for p in present if dominates(slots.points[s], slots.points[p])]
        same = [p for p in present if (slots.points[p] == slots.points[s]).all()]
        clocks[END, worse] = np.minimum(clocks[END, worse], clocks[TIME, s])
        present -= set(worse)
        if better:
            clocks[START, s] = max(clocks[START, s], clocks[TIME, max(better)] + WINDOW)
        if not better and (stored or not same):
            going.add(arrival)
        if stored:
            present.add(s)
    return clocks, going


def compare_stored(slots: steps.PointSlots, index: steps.SlotIndex) -> set[int]:
    """Compare the points of the full block with one another, as if they had arrived; return those not pruned."""
    present = set()
    for p in range(BLOCK):
        dominators = [q for q in range(BLOCK) if dominates(slots.points[q], slots.points[p])]
        before = [q for q in dominators if q < p]
        if before:
            slots.clocks[START, p] = slots.clocks[TIME, max(before)] + WINDOW
        if len(before) == len(dominators):
            present.add(p)
        else:
            index.present[p // LANES] &= ~np.uint64(1 << p % LANES)
    return present


def test_arrivals_are_compared_with_one_another_in_the_open_block(stored):
    slots, index = stored
    present: set[int] = set()
    clocks, going = compared(slots, present, 150, stored=True)
    arrivals = steps._arrivals(D, WINDOW)
    steps._pass_open_block(slots, index, 1, arrivals, (BLOCK, BLOCK + 150), stored=True)
    assert members(index.present[BLOCK // LANES :]) == {p - BLOCK for p in present}
    assert slots.clocks.tolist() == clocks.tolist()
    assert members(arrivals.going) == going


def test_arrivals_are_compared_with_a_full_block_in_order_of_time(stored):
    slots, index = stored
    arrivals = arriving(slots, 200)
    present = compare_stored(slots, index)
    clocks, going = compared(slots, present, 200, stored=False)
    steps._pass_full_blocks(slots, index, (0, 1), arrivals, BLOCK)
    assert members(index.present) == present
    assert slots.clocks.tolist() == clocks.tolist()
    assert members(arrivals.going) == going


def test_all_steps_together_give_the_times_of_all_pairs(stored):
    slots, index = steps.empty_slots(2 * BLOCK, D), steps.empty_index(2 * BLOCK, D)
    slots.points[:], slots.ranks[:], slots.clocks[:] = stored[0].points, stored[0].ranks, stored[0].clocks
    window, n = 700, 2 * BLOCK
    slots.clocks[END] = slots.clocks[TIME] + window
    for begin, end in ((0, 100), (100, 600), (600, n)):
        steps.absorb(slots, index, begin, end, window)
    below = (slots.points[:, None] <= slots.points).all(axis=2)
    assert_times_of_all_pairs(slots.clocks, np.asarray(below & ~below.T), window)


def assert_times_of_all_pairs(clocks: np.ndarray, dominating: np.ndarray, window: int) -> None:
    """The stays are those of points in order of arrival; `dominating` [q, p]: q dominates p."""
    times, order = clocks[TIME], np.arange(len(dominating))
    earlier = order[:, None] < order
    sit = np.where(dominating & earlier, times[:, None] + window, 0).max(axis=0)
    prune = np.where(dominating & ~earlier, times[:, None], 2**62).min(axis=0)
    starts, ends = np.maximum(times, sit), np.minimum(prune, times + window)
    on_front = starts < ends
    assert (clocks[START] < clocks[END]).tolist() == on_front.tolist()
    assert clocks[START, on_front].tolist() == starts[on_front].tolist()
    assert clocks[END, on_front].tolist() == ends[on_front].tolist()
