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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import BLOCK, WORDS, block_words, fill_block, points_above, points_below, words_around
from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import dominates
from skypane.kernels.ranks import EMPTY
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_ge, lanes_le, last_bit
from skypane.kernels.tiles import empty_tiles, put_ranks
from skypane.types import FloatArray, IntArray


class Slots(NamedTuple):
    """Points in order of arrival, and what is known of each; room for whole blocks."""

    points: FloatArray  # (room, d)
    ranks: NDArray[np.uint8]  # (room, d)
    times: IntArray  # (room,) of arrival
    starts: IntArray  # (room,) max(t, SIT), as far as it is known
    ends: IntArray  # (room,) min(prune, t + w), as far as it is known


class Index(NamedTuple):
    """What finds the slots that a point dominates, or is dominated by."""

    bitmaps: NDArray[np.uint64]  # of full blocks
    tiles: NDArray[np.uint8]  # of the open block
    present: NDArray[np.uint64]  # a bit per slot: not pruned


def empty_slots(room: int, d: int) -> Slots:
    """Slots for `room` points, a multiple of 512."""
    numbers = np.empty((3, room), np.int64)
    return Slots(np.empty((room, d)), np.empty((room, d), np.uint8), *numbers)


def empty_index(room: int, d: int) -> Index:
    """An index of `room` slots, a multiple of 512."""
    blocks = room // BLOCK
    return Index(
        np.empty(blocks * block_words(d), np.uint64), empty_tiles(BLOCK, d), np.zeros(blocks * WORDS, np.uint64)
    )


@kernel
def _equal(points: FloatArray, a: int, b: int) -> bool:
    for j in range(points.shape[1]):
        if points[a, j] != points[b, j]:
            return False
    return True


@kernel
def _prune(slots: Slots, present: NDArray[np.uint64], word: int, lanes: np.uint64, s: int) -> None:
    """End the stay of those points, lanes of one word of slots, that slot s dominates."""
    points, _, times, _, ends = slots
    while lanes != NONE:
        lane = first_bit(lanes)
        bit = lanes & (~lanes + ONE)
        lanes ^= bit
        other = word * LANES + lane
        if dominates(points, s, other):
            ends[other] = min(ends[other], times[s])
            present[word] &= ~bit


@kernel
def _dominated(slots: Slots, word: int, lanes: np.uint64, s: int, window: int) -> bool:
    """Whether one of these lanes of a word dominates slot s, whose start is then the end of the youngest one's window."""
    points, _, times, starts, _ = slots
    while lanes != NONE:
        lane = last_bit(lanes)
        lanes ^= ONE << np.uint64(lane)
        other = word * LANES + lane
        if dominates(points, other, s):
            starts[s] = max(starts[s], times[other] + window)
            return True
    return False


@kernel
def _meet_open_block(slots: Slots, index: Index, s: int, window: int) -> bool:
    """Compare slot s with the earlier ones of its block; return whether one dominates it."""
    tiles = index.tiles
    present = index.present
    ranks = slots.ranks
    d = ranks.shape[1]
    first = s // BLOCK * WORDS
    for word in range(s // LANES, first - 1, -1):
        if present[word] == NONE:
            continue
        at = (word - first) * LANES * d
        above = lanes_ge(tiles, at, ranks, s) & present[word]
        if above != NONE:
            _prune(slots, present, word, above, s)
        below = lanes_le(tiles, at, ranks, s) & present[word]
        if below != NONE and _dominated(slots, word, below, s, window):
            return True
    return False


@kernel
def _meet_word(slots: Slots, index: Index, word: int, s: int, window: int) -> bool:
    """Compare slot s with a word of a full block; return whether older ones need not be looked at."""
    bitmaps, _, present = index
    ranks = slots.ranks
    at = word // WORDS * block_words(ranks.shape[1])
    w = word % WORDS
    above = points_above(bitmaps, at, w, ranks, s) & present[word]
    if above != NONE:
        _prune(slots, present, word, above, s)
    below = points_below(bitmaps, at, w, ranks, s) & present[word]
    if below == NONE:
        return False
    if _dominated(slots, word, below, s, window):
        return True
    twins = below & points_above(bitmaps, at, w, ranks, s)
    while twins != NONE:
        other = word * LANES + last_bit(twins)
        twins ^= ONE << np.uint64(last_bit(twins))
        if _equal(slots.points, other, s):  # what holds for it holds for s: all dominators since would have pruned it
            slots.starts[s] = max(slots.starts[s], slots.starts[other])
            return True
    return False


@kernel
def _meet_block(slots: Slots, index: Index, b: int, words: np.uint64, place: tuple[int, int]) -> bool:
    """Compare slot s with these words of full block b, newest first; place = (s, window)."""
    s, window = place
    while words != NONE:
        w = last_bit(words)
        words ^= ONE << np.uint64(w)
        if _meet_word(slots, index, b * WORDS + w, s, window):
            return True
    return False


@kernel
def absorb(slots: Slots, index: Index, begin: int, end: int, window: int) -> None:
    """Compare the arrivals in slots begin..end - 1 with one another and with all before them.

    Their points, ranks and times are there, in order of time; starts are the times, ends the times + window. Afterwards the
    starts and ends of all slots are right, as far as the points up to `end` tell.
    """
    bitmaps, tiles, present = index
    ranks = slots.ranks
    times = slots.times
    d = ranks.shape[1]
    words = block_words(d)
    group = np.empty(BLOCK, np.int64)
    oldest = 0  # slot
    first = begin
    while first < end:
        b = first // BLOCK
        last = min(end, (b + 1) * BLOCK)
        left = 0
        for s in range(first, last):
            if not _meet_open_block(slots, index, s, window):
                group[left] = s
                left += 1
            put_ranks(tiles, s % BLOCK, ranks, s)
            present[s // LANES] |= ONE << np.uint64(s % LANES)
        while oldest < first and times[oldest] + window <= times[first]:
            oldest += 1
        for c in range(b - 1, oldest // BLOCK - 1, -1):
            stay = 0
            for g in range(left):
                s = group[g]
                near = words_around(bitmaps, c * words, ranks, s, present, c * WORDS)
                near = (near | near >> np.uint64(WORDS)) & np.uint64(255)
                if near != NONE and _meet_block(slots, index, c, near, (s, window)):
                    continue
                group[stay] = s
                stay += 1
            left = stay
        if last == (b + 1) * BLOCK:
            fill_block(bitmaps, b * words, tiles, d)
            tiles[:] = EMPTY
        first = last


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
