"""From when until when each point of a stream is on the skyline of a sliding window (paper 4, section 3), by batches.

Point p arrives at time t and is in the window during [t, t + w). With

    SIT(p)   = max {t_q + w : q earlier, q dominates p}      its skyline influence time (definition 3.1)
    prune(p) = min {t_q     : q later,   q dominates p}

p is on the skyline during [max(t, SIT(p)), min(prune(p), t + w)), or never if that is no interval. Neither needs the
order of other points than p and q, so a batch is worked through block by block instead of point by point.

Stored points lie in slots, in order of arrival. 512 slots are a block: a bitmap block, and byte tiles while it is the last,
open one. An arrival is compared from the newest slot to the oldest, and only as far as its youngest dominator r: whatever is
older than r and dominated by the arrival, r has pruned already.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import BLOCK, WORDS, block_words, fill_block, points_above, points_below, words_around
from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import dominates
from skypane.kernels.ranks import EMPTY
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_ge, lanes_le, last_bit
from skypane.kernels.tiles import empty_tiles, put_ranks
from skypane.types import FloatArray, IntArray

TIME: Final = 0  # rows of Slots.clocks
START: Final = 1
END: Final = 2


class Slots(NamedTuple):
    """Points in order of arrival, and what is known of each; room for whole blocks."""

    points: FloatArray  # (room, d)
    ranks: NDArray[np.uint8]  # (room, d)
    clocks: IntArray  # (3, room): time of arrival; max(t, SIT) and min(prune, t + w), as far as they are known


class Index(NamedTuple):
    """What finds the slots that a point dominates, or is dominated by."""

    bitmaps: NDArray[np.uint64]  # of full blocks
    tiles: NDArray[np.uint8]  # of the open block
    present: NDArray[np.uint64]  # a bit per slot: not pruned


def empty_slots(room: int, d: int) -> Slots:
    """Slots for `room` points, a multiple of 512."""
    return Slots(np.empty((room, d)), np.empty((room, d), np.uint8), np.empty((3, room), np.int64))


def empty_index(room: int, d: int) -> Index:
    """An index of `room` slots, a multiple of 512."""
    blocks = room // BLOCK
    return Index(
        np.empty(blocks * block_words(d), np.uint64), empty_tiles(BLOCK, d), np.zeros(blocks * WORDS, np.uint64)
    )


@kernel
def _dominated_by(points: FloatArray, word: int, lanes: np.uint64, s: int) -> np.uint64:
    """Those of the given lanes, of a word of slots, that slot s dominates."""
    out = NONE
    while lanes != NONE:
        if dominates(points, s, word * LANES + first_bit(lanes)):
            out |= lanes & (~lanes + ONE)
        lanes &= lanes - ONE
    return out


@kernel
def _end_stays(clocks: IntArray, word: int, lanes: np.uint64, now: int) -> None:
    """End the stay of the given lanes, of a word of slots, at `now`."""
    while lanes != NONE:
        other = word * LANES + first_bit(lanes)
        clocks[END, other] = min(clocks[END, other], now)
        lanes &= lanes - ONE


@kernel
def _youngest_dominator(points: FloatArray, word: int, lanes: np.uint64, s: int) -> int:
    """The last of the given lanes, of a word of slots, that dominates slot s: its slot, or -1."""
    while lanes != NONE:
        lane = last_bit(lanes)
        if dominates(points, word * LANES + lane, s):
            return int(word * LANES + lane)
        lanes ^= ONE << np.uint64(lane)
    return -1


@kernel
def _twin(points: FloatArray, word: int, lanes: np.uint64, s: int) -> int:
    """One of the given lanes, of a word of slots, that equals slot s: its slot, or -1."""
    while lanes != NONE:
        other = word * LANES + first_bit(lanes)
        equal = True
        for j in range(points.shape[1]):
            equal &= points[other, j] == points[s, j]
        if equal:
            return int(other)
        lanes &= lanes - ONE
    return -1


@kernel
def _pass_open_block(slots: Slots, index: Index, block: int, begin: int, group: IntArray, window: int) -> int:
    """Compare arrivals, in slots from `begin` on, with all before them in the open block; put those of the block into its tiles.

    As many as `group` has room for. Return how many are dominated by none; their slots are at the front of `group`.
    """
    points, ranks, clocks = slots
    _, tiles, present = index
    d = ranks.shape[1]
    first = block * WORDS
    left = 0
    for s in range(begin, begin + group.shape[0]):
        by = -1
        for word in range(min(s // LANES, first + WORDS - 1), first - 1, -1):
            if present[word] == NONE:
                continue
            at = (word - first) * LANES * d
            above = lanes_ge(tiles, at, ranks, s) & present[word]
            if above != NONE:
                above = _dominated_by(points, word, above, s)
                present[word] &= ~above
                _end_stays(clocks, word, above, clocks[TIME, s])
            below = lanes_le(tiles, at, ranks, s) & present[word]
            if below != NONE:
                by = _youngest_dominator(points, word, below, s)
                if by >= 0:
                    break
        if by >= 0:
            clocks[START, s] = max(clocks[START, s], clocks[TIME, by] + window)
        else:
            group[left] = s
            left += 1
        if s // BLOCK == block:
            put_ranks(tiles, s % BLOCK, ranks, s)
            present[s // LANES] |= ONE << np.uint64(s % LANES)
    return left


@kernel
def _pass_full_blocks(slots: Slots, index: Index, blocks: tuple[int, int], group: IntArray, window: int) -> None:
    """Compare a group of arrivals, by time, with full blocks, from the newest to the oldest of `blocks`, an open range."""
    points, ranks, clocks = slots
    bitmaps, _, present = index
    oldest, newest = blocks
    words = block_words(ranks.shape[1])
    left = len(group)
    for b in range(newest - 1, oldest - 1, -1):
        at = b * words
        stay = 0
        for g in range(left):
            s = group[g]
            near = words_around(bitmaps, at, ranks, s, present, b * WORDS)
            near = (near | near >> np.uint64(WORDS)) & np.uint64(255)
            done = False
            while near != NONE and not done:
                w = last_bit(near)
                near ^= ONE << np.uint64(w)
                word = b * WORDS + w
                above = points_above(bitmaps, at, w, ranks, s) & present[word]
                below = points_below(bitmaps, at, w, ranks, s) & present[word]
                twins = above & below
                if above != NONE:
                    above = _dominated_by(points, word, above, s)
                    present[word] &= ~above
                    _end_stays(clocks, word, above, clocks[TIME, s])
                if below == NONE:
                    continue
                by = _youngest_dominator(points, word, below, s)
                if by >= 0:
                    clocks[START, s] = max(clocks[START, s], clocks[TIME, by] + window)
                    done = True
                elif twins != NONE:
                    # what dominated a twin since it came would have pruned it: its start holds for s, too
                    twin = _twin(points, word, twins, s)
                    if twin >= 0:
                        clocks[START, s] = max(clocks[START, s], clocks[START, twin])
                        done = True
            if not done:
                group[stay] = s
                stay += 1
        left = stay


@kernel
def absorb(slots: Slots, index: Index, begin: int, end: int, window: int) -> None:
    """Compare the arrivals in slots begin..end - 1 with one another and with all before them.

    Their points, ranks and times are there, in order of time; starts are the times, ends the times + window. Afterwards the
    starts and ends of all slots are right, as far as the points up to `end` tell.
    """
    times = slots.clocks[TIME]
    d = slots.ranks.shape[1]
    group = np.empty(BLOCK, np.int64)
    oldest = 0  # slot in the window
    while begin < end:
        b = begin // BLOCK
        last = min(end, (b + 1) * BLOCK)
        left = _pass_open_block(slots, index, b, begin, group[: last - begin], window)
        while oldest < begin and times[oldest] + window <= times[begin]:
            oldest += 1
        _pass_full_blocks(slots, index, (oldest // BLOCK, b), group[:left], window)
        if last == (b + 1) * BLOCK:
            fill_block(index.bitmaps, b * block_words(d), index.tiles, d)
            index.tiles[:] = EMPTY
        begin = last


@kernel
def visit(slots: Slots, index: Index, size: int, begin: int, end: int, window: int) -> None:
    """Compare points in slots begin..end - 1 with the `size` first ones, which came before them, and not with one another.

    They are not stored: from the next block on after those of the first `size` slots, slots are free again afterwards. The
    starts of the visitors and the ends of the stored are right then, as far as these points tell.
    """
    group = np.empty(BLOCK, np.int64)
    block = size // BLOCK
    for first in range(begin, end, BLOCK):
        left = _pass_open_block(slots, index, block, first, group[: min(end - first, BLOCK)], window)
        _pass_full_blocks(slots, index, (0, block), group[:left], window)


@kernel
def rebuild(slots: Slots, index: Index, size: int) -> None:
    """Index the first `size` slots anew, all of them present."""
    ranks = slots.ranks
    d = ranks.shape[1]
    index.present[:] = NONE
    index.tiles[:] = EMPTY
    for s in range(size):
        put_ranks(index.tiles, s % BLOCK, ranks, s)
        index.present[s // LANES] |= ONE << np.uint64(s % LANES)
        if s % BLOCK == BLOCK - 1:
            fill_block(index.bitmaps, s // BLOCK * block_words(d), index.tiles, d)
            index.tiles[:] = EMPTY
