"""From when until when each point of a stream is on the skyline of a sliding window (paper 4, section 3), by batches.

Point p arrives at time t and is in the window during [t, t + w). With

    SIT(p)   = max {t_q + w : q earlier, q dominates p}      its skyline influence time (definition 3.1)
    prune(p) = min {t_q     : q later,   q dominates p}

p is on the skyline during [max(t, SIT(p)), min(prune(p), t + w)), or never if that is no interval. Neither needs the
order of other points than p and q, so a batch is worked through block by block instead of point by point.

Stored points lie in slots, in order of arrival. 512 slots are a block: a bitmap block, and byte tiles while it is the last,
open one. An arrival is compared from the newest slot to the oldest, and only as far as its youngest dominator r: whatever is
older than r and dominated by the arrival, r has pruned already.

So arrivals meet the points of a block in order of time: the first that dominates a point sets prune(p), and the point is
hidden from those after it. Where all arrivals of a call have one time and none dominates another, as the rows of a pane's
skyline (absorb_apart), their order makes no difference: whichever prunes a point sets the same prune(p), and a point that
one arrival prunes dominates no other arrival r, or the one that prunes it would dominate r. Windows of panes are answered so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import (
    BLOCK,
    WORDS,
    block_words,
    fill_block,
    grain,
    points_above,
    points_below,
    words_around,
    words_beneath,
    words_beyond,
)
from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import dominates
from skypane.kernels.ranks import EMPTY
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_ge, lanes_le, last_bit
from skypane.kernels.tiles import empty_tiles, put_ranks
from skypane.types import FloatArray, IntArray

TIME: Final = 0  # rows of Slots.clocks
START: Final = 1
END: Final = 2

_LEAST: Final = 0  # rows of bounds
_MOST: Final = 1

_STORED: Final = True  # arrivals that stay
_VISITING: Final = False


class Slots(NamedTuple):
    """Points in order of arrival, and what is known of each; room for whole blocks."""

    points: FloatArray  # (room, d)
    ranks: NDArray[np.uint8]  # (room, d)
    clocks: IntArray  # (3, room): time of arrival; max(t, SIT) and min(prune, t + w), as far as they are known


class Index(NamedTuple):
    """What finds the slots that a point dominates, or is dominated by."""

    bitmaps: NDArray[np.uint64]  # of full blocks
    bounds: NDArray[np.uint8]  # (2 * blocks, d): the least ranks of each full block, and the greatest
    tiles: NDArray[np.uint8]  # of the open block
    present: NDArray[np.uint64]  # a bit per slot: not pruned


class Arrivals(NamedTuple):
    """Points of one block of slots on their way through older blocks."""

    tiles: NDArray[np.uint8]  # their ranks
    going: NDArray[np.uint64]  # a bit per slot: those that have not met a point that dominates them
    window: int


def empty_slots(room: int, d: int) -> Slots:
    """Slots for `room` points, a multiple of 512."""
    return Slots(np.empty((room, d)), np.empty((room, d), np.uint8), np.empty((3, room), np.int64))


def empty_index(room: int, d: int) -> Index:
    """An index of `room` slots, a multiple of 512."""
    blocks = room // BLOCK
    return Index(
        np.empty(blocks * block_words(d, grain(d)), np.uint64),
        np.empty((2 * blocks, d), np.uint8),
        empty_tiles(BLOCK, d),
        np.zeros(blocks * WORDS, np.uint64),
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
def _store(slots: Slots, index: Index, begin: int, end: int) -> None:
    """Put slots begin..end - 1, the next ones, into the index."""
    ranks = slots.ranks
    tiles, present = index.tiles, index.present
    for s in range(begin, end):
        put_ranks(tiles, s % BLOCK, ranks, s)
        present[s // LANES] |= ONE << np.uint64(s % LANES)
        if s % BLOCK == BLOCK - 1:
            _close_block(ranks, index, s // BLOCK)


@kernel
def _close_block(ranks: NDArray[np.uint8], index: Index, b: int) -> None:
    """Make bitmaps of the open block, which is full."""
    d = ranks.shape[1]
    fill_block(index.bitmaps, b * block_words(d, grain(d)), index.tiles, d, grain(d))
    _put_bounds(index.bounds, b, ranks)
    index.tiles[:] = EMPTY


@kernel
def _put_bounds(bounds: NDArray[np.uint8], b: int, ranks: NDArray[np.uint8]) -> None:
    """Write the bounds of full block b."""
    for j in range(ranks.shape[1]):
        least = most = ranks[b * BLOCK, j]
        for s in range(b * BLOCK, (b + 1) * BLOCK):
            least = min(least, ranks[s, j])
            most = max(most, ranks[s, j])
        bounds[2 * b + _LEAST, j] = least
        bounds[2 * b + _MOST, j] = most


@kernel
def _pass_open_block(
    slots: Slots, index: Index, block: int, arrivals: Arrivals, span: tuple[int, int], stored: bool
) -> None:
    """Compare arrivals, in the slots of a span inside one block, with all in the open block; if they are stored, with those before them."""
    points, ranks, clocks = slots
    tiles, present = index.tiles, index.present
    d = ranks.shape[1]
    first = block * WORDS
    arrivals.going[:] = NONE
    for s in range(span[0], span[1]):
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
            clocks[START, s] = max(clocks[START, s], clocks[TIME, by] + arrivals.window)
        else:
            lane = s % BLOCK
            put_ranks(arrivals.tiles, lane, ranks, s)
            arrivals.going[lane // LANES] |= ONE << np.uint64(lane % LANES)
        if stored:
            put_ranks(tiles, s % BLOCK, ranks, s)
            present[s // LANES] |= ONE << np.uint64(s % LANES)


@kernel
def _pass_full_blocks(slots: Slots, index: Index, blocks: tuple[int, int], arrivals: Arrivals, begin: int) -> None:
    """Compare arrivals, whose block begins with slot `begin`, with full blocks, from the newest to the oldest of `blocks`, an open range."""
    points, ranks, clocks = slots
    bitmaps, bounds, _, present = index
    tiles, going, window = arrivals
    oldest, newest = blocks
    d = ranks.shape[1]
    shift = grain(d)
    near = np.empty(BLOCK, np.uint64)  # for each arrival: the words of a block that it must look into
    looking = np.empty(WORDS, np.uint64)  # a bit for each arrival that has such words
    for b in range(newest - 1, oldest - 1, -1):
        at = b * block_words(d, shift)
        for w in range(WORDS):
            looking[w] = NONE
            if going[w] == NONE:
                continue
            some = NONE
            first = begin + w * LANES
            low = lanes_ge(tiles, w * LANES * d, bounds, 2 * b + _LEAST) & going[w]
            high = lanes_le(tiles, w * LANES * d, bounds, 2 * b + _MOST) & going[w]
            both = low & high
            low ^= both
            high ^= both
            # three loops of their own: as one inlined function, with eight arguments, they took an eighth longer
            while both != NONE:
                lane = first_bit(both)
                words = words_around(bitmaps, at, ranks, first + lane, present, b * WORDS, shift)
                near[w * LANES + lane] = words
                some |= np.uint64(words != NONE) << np.uint64(lane)
                both &= both - ONE
            while low != NONE:
                lane = first_bit(low)
                words = words_beneath(bitmaps, at, ranks, first + lane, present, b * WORDS, shift)
                near[w * LANES + lane] = words
                some |= np.uint64(words != NONE) << np.uint64(lane)
                low &= low - ONE
            while high != NONE:
                lane = first_bit(high)
                words = words_beyond(bitmaps, at, ranks, first + lane, present, b * WORDS, shift)
                near[w * LANES + lane] = words
                some |= np.uint64(words != NONE) << np.uint64(lane)
                high &= high - ONE
            looking[w] = some
        # in order of time: of several arrivals that dominate a point, the first ends its stay
        for group in range(WORDS):
            while looking[group] != NONE:
                arrival = group * LANES + first_bit(looking[group])
                looking[group] &= looking[group] - ONE
                s = begin + arrival
                words = (near[arrival] | near[arrival] >> np.uint64(WORDS)) & np.uint64(255)
                while words != NONE:
                    w = last_bit(words)
                    words ^= ONE << np.uint64(w)
                    word = b * WORDS + w
                    above = points_above(bitmaps, at, w, ranks, s, shift) & present[word]
                    below = points_below(bitmaps, at, w, ranks, s, shift) & present[word]
                    twins = above & below
                    if above != NONE:
                        above = _dominated_by(points, word, above, s)
                        present[word] &= ~above
                        _end_stays(clocks, word, above, clocks[TIME, s])
                    if below == NONE:
                        continue
                    by = _youngest_dominator(points, word, below, s)
                    until = clocks[TIME, by] + window if by >= 0 else np.int64(0)
                    if by < 0 and twins != NONE:
                        # what dominated a twin since it came would have pruned it: its start holds for s, too
                        by = _twin(points, word, twins, s)
                        until = clocks[START, by] if by >= 0 else np.int64(0)
                    if by >= 0:
                        clocks[START, s] = max(clocks[START, s], until)
                        going[arrival // LANES] &= ~(ONE << np.uint64(arrival % LANES))
                        break


@kernel
def _first_block(slots: Slots, size: int, begin: int, window: int) -> int:
    """Return the block, of those of the first `size` slots, of the oldest point in the window when slot `begin` arrives."""
    times = slots.clocks[TIME]
    return int(np.searchsorted(times[:size], times[begin] - window, "right")) // BLOCK


@kernel
def _arrivals(d: int, window: int) -> Arrivals:
    return Arrivals(empty_tiles(BLOCK, d), np.zeros(WORDS, np.uint64), window)


@kernel
def absorb(slots: Slots, index: Index, begin: int, end: int, window: int) -> None:
    """Compare the arrivals in slots begin..end - 1 with one another and with all before them.

    Their points, ranks and times are there, in order of time; starts are the times, ends the times + window. Afterwards the
    starts and ends of all slots are right, as far as the points up to `end` tell.
    """
    arrivals = _arrivals(slots.ranks.shape[1], window)
    while begin < end:
        b = begin // BLOCK
        last = min(end, (b + 1) * BLOCK)
        blocks = (_first_block(slots, begin, begin, window), b)
        _pass_open_block(slots, index, b, arrivals, (begin, last), _STORED)
        _pass_full_blocks(slots, index, blocks, arrivals, b * BLOCK)
        if last == (b + 1) * BLOCK:
            _close_block(slots.ranks, index, b)
        begin = last


@kernel
def visit(slots: Slots, index: Index, begin: int, end: int, window: int) -> None:
    """Compare points in slots begin..end - 1 with all before them, and not with one another.

    They are not stored. The starts of the visitors and the ends of the stored are right then, as far as these points tell.
    """
    arrivals = _arrivals(slots.ranks.shape[1], window)
    size = begin
    block = size // BLOCK
    while begin < end:
        last = min(end, (begin // BLOCK + 1) * BLOCK)
        blocks = (_first_block(slots, size, begin, window), block)
        _pass_open_block(slots, index, block, arrivals, (begin, last), _VISITING)
        _pass_full_blocks(slots, index, blocks, arrivals, begin // BLOCK * BLOCK)
        begin = last


@kernel
def absorb_apart(slots: Slots, index: Index, begin: int, end: int, window: int) -> None:
    """Do as absorb() with arrivals of which none dominates another."""
    visit(slots, index, begin, end, window)
    _store(slots, index, begin, end)


@kernel
def rebuild(slots: Slots, index: Index, size: int) -> None:
    """Index the first `size` slots anew, all of them present."""
    index.present[:] = NONE
    index.tiles[:] = EMPTY
    _store(slots, index, 0, size)
