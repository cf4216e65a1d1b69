"""Each step of the comparison of arrivals with stored points, against a naive definition over all pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from skypane.kernels import influence as steps
from skypane.kernels.blocks import BLOCK, WORDS
from skypane.kernels.influence import END, NEVER, START, TIME
from skypane.kernels.simd import LANES
from skypane.kernels.tiles import put_ranks

D, WINDOW = 3, 10_000


def lanes(which: Iterable[int]) -> np.uint64:
    """Return the mask of these lanes of a word."""
    return np.uint64(sum(1 << lane for lane in which))


def members(words: np.ndarray) -> set[int]:
    """Return the numbers of the bits that are set."""
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def dominates(p: np.ndarray, q: np.ndarray) -> bool:
    return bool((p <= q).all() and (p < q).any())


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


def test_pruned_points_are_those_that_the_slot_dominates(stored):
    slots, index = stored
    given = set(range(0, LANES, 3))
    s = BLOCK + 5
    expected = {lane for lane in given if dominates(slots.points[s], slots.points[LANES + lane])}
    assert members(np.array([steps._dominated_by(slots.points, 1, lanes(given), s)])) == expected
    steps._prune(slots.points, slots.clocks, index.present, 1, lanes(given), s)
    assert members(index.present[1:2]) == set(range(LANES)) - expected
    pruned = np.flatnonzero(slots.clocks[END] != slots.clocks[TIME] + WINDOW)
    assert set(pruned.tolist()) == {LANES + lane for lane in expected}
    assert (slots.clocks[END, pruned] == slots.clocks[TIME, s]).all()


def test_a_stay_that_has_ended_earlier_is_not_prolonged():
    clocks = np.array([[0, 0], [0, 0], [3, 9]])
    steps._end_stays(clocks, 0, lanes([0, 1]), 5)
    assert clocks[END].tolist() == [3, 5]


def test_a_slot_waits_for_its_youngest_dominator_or_as_long_as_its_twin(stored):
    slots, _ = stored
    slots.clocks[START, :LANES] += 7
    for s in range(BLOCK, BLOCK + 60):
        below = [lane for lane in range(LANES) if (slots.points[lane] <= slots.points[s]).all()]
        better = [lane for lane in below if dominates(slots.points[lane], slots.points[s])]
        same = sorted(set(below) - set(better))
        assert steps._youngest_dominator(slots.points, 0, lanes(below), s) == max(better, default=-1)
        assert steps._twin(slots.points, 0, lanes(same), s) == min(same, default=-1)
        until = steps._dominated_until(slots, 0, lanes(below), lanes(same), s, WINDOW)
        if better:
            assert until == slots.clocks[TIME, max(better)] + WINDOW
        else:
            assert until == (slots.clocks[START, min(same)] if same else NEVER)


def test_words_are_found_for_every_arrival_with_a_point_below_or_above_it(stored):
    slots, index = stored
    arrivals = arriving(slots, 300)
    found = steps.FoundWords(np.zeros(BLOCK, np.uint64), np.zeros(WORDS, np.uint64))
    steps._find_words(slots.ranks, index, arrivals, 0, BLOCK, found)
    looking = members(found.looking)
    assert looking <= set(range(300))
    for arrival in range(300):
        near = members(found.near[arrival : arrival + 1]) if arrival in looking else set()
        words = slots.points[:BLOCK].reshape(WORDS, LANES, D)
        below = {w for w in range(WORDS) if (words[w] <= slots.points[BLOCK + arrival]).all(axis=1).any()}
        above = {w for w in range(WORDS) if (words[w] >= slots.points[BLOCK + arrival]).all(axis=1).any()}
        assert below | above <= {bit % WORDS for bit in near}


def test_the_bounds_of_a_block_are_its_least_and_greatest_ranks(stored):
    slots, index = stored
    assert index.bounds[0].tolist() == slots.ranks[:BLOCK].min(axis=0).tolist()
    assert index.bounds[1].tolist() == slots.ranks[:BLOCK].max(axis=0).tolist()


def test_arrivals_are_compared_with_a_full_block_in_order_of_time(stored):
    slots, index = stored
    n = 200
    arrivals = arriving(slots, n)
    present = {p for p in range(BLOCK) if not any(dominates(slots.points[q], slots.points[p]) for q in range(p, BLOCK))}
    for pruned in set(range(BLOCK)) - present:  # by a later point of the block
        index.present[pruned // LANES] &= ~np.uint64(1 << pruned % LANES)
    ends, starts = slots.clocks[END].copy(), slots.clocks[START].copy()
    going = set(range(n))
    for arrival in range(n):
        s = BLOCK + arrival
        better = [p for p in present if dominates(slots.points[p], slots.points[s])]
        worse = [p for p in present if dominates(slots.points[s], slots.points[p])]
        same = [p for p in present if (slots.points[p] == slots.points[s]).all()]
        ends[worse] = np.minimum(ends[worse], slots.clocks[TIME, s])
        present -= set(worse)
        if better or same:
            starts[s] = max(starts[s], max(better) + WINDOW if better else max(starts[p] for p in same))
            going.remove(arrival)
    steps._pass_full_blocks(slots, index, (0, 1), arrivals, BLOCK)
    assert members(index.present) == present
    assert slots.clocks[END].tolist() == ends.tolist()
    assert slots.clocks[START].tolist() == starts.tolist()
    assert members(arrivals.going) == going
