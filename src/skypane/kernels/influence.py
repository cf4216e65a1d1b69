"""The times during which each point of a stream is on the skyline of a sliding window (paper 4, section 3), in batches.

Point p arrives at time t and is in the window during [t, t + w). With

    SIT(p)   = max {t_q + w : q earlier, q dominates p}      its skyline influence time (definition 3.1)
    prune(p) = min {t_q     : q later,   q dominates p}

p is on the skyline during [max(t, SIT(p)), min(prune(p), t + w)), or never if this interval is empty. Both times depend
only on pairs of p and q, so a batch is processed block by block instead of point by point.

Stored points are in slots, in order of arrival. 64 slots are a word, 8 words are a block. All blocks but the last are
full; the last one is open: it takes the next arrivals. For d columns:

    slot        0 ......... 511   512 ........ 1023   1024 ... 1087 | next arrival ->
    word        0 ........... 7   8 ............ 15   16
    block       0 (full)          1 (full)            2 (open)

    points      one row of d values per slot                        PointSlots
    ranks       one row of d byte ranks per slot
    clocks      row TIME   t, in order
                row START  max(t, SIT), of the points compared so far
                row END    min(prune, t + w), of the same

    present     8 words           8 words             8 words       SlotIndex: bit of a slot set: stored and not pruned
    bitmaps     bitmap block 0    bitmap block 1                    blocks.py: sets of points by column and level
    bounds      rows 0, 1         rows 2, 3                         least and greatest rank of each column in the block
    tiles                                             8 tiles       tiles.py: ranks of the open block, a tile per word

An arrival s is compared with slots from the newest to the oldest. Points that it dominates are pruned (pruning phase in
the paper). The scan ends at its youngest dominator r (search phase; r is the paper's critical dominator): points that
are older than r and dominated by s have been pruned by r already.

    slot        p                r                   q                   s
                                 | <--------------------- newest first --+
                pruned by r      dominates s:        dominated by s:
                before           SIT(s) = t_r + w    prune(q) = t_s
                                 START of s          END of q, and its bit of `present`

absorb() takes the arrivals that go into one block at a time:

    1  open block    compare each arrival, in order of time, with the tiles of the open block, then store it
                     (_pass_open_block)
    2  full blocks   for each full block, from the newest to the oldest that reaches into the window
                     (_pass_full_blocks):
       a  bounds     skip the arrivals that the bounds exclude, 64 arrivals at a time
       b  bitmaps    for each other arrival, find the words with points that may dominate it (find_words_beneath), be
                     dominated (find_words_beyond), or both (find_words_around), as the bounds allow
       c  points     compare the points in these words, in order of the arrivals: set START, END and `present`
    3  close         when the open block is full, compute its bitmaps and bounds, and open the next (_close_block)

visit() runs steps 1 and 2 without storing; absorb_apart() runs visit(), then stores the arrivals (_store); rebuild()
indexes all slots again.

In step 2c, arrivals are compared with the points of a block in order of time: the first one that dominates a point sets
prune(p), and hides the point from the arrivals after it. If all arrivals of a call have the same time and none
dominates another, as the rows of a pane's skyline (absorb_apart), their order does not matter: every arrival that
prunes a point sets the same prune(p), and a point pruned by one arrival cannot dominate another arrival r, since the
pruning arrival would then dominate r. Windows of panes are answered this way.
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
    find_words_around,
    find_words_beneath,
    find_words_beyond,
    grain,
    points_above,
    points_below,
)
from skypane.kernels.byte_ranks import EMPTY
from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import dominates
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_ge, lanes_le, last_bit
from skypane.kernels.tiles import empty_tiles, put_ranks
from skypane.types import FloatArray, IntArray

TIME: Final = 0  # rows of PointSlots.clocks, as are START and END
START: Final = 1
END: Final = 2

_LEAST: Final = 0  # offsets into the rows of SlotIndex.bounds, as is _MOST
_MOST: Final = 1

_STORED: Final = True  # values of _pass_open_block's `stored`
_VISITING: Final = False


class PointSlots(NamedTuple):
    """Points in order of arrival, with their ranks and times; `room` is a multiple of the block size."""

    points: FloatArray  # (room, d)
    ranks: NDArray[np.uint8]  # (room, d)
    clocks: IntArray  # (3, room): time of arrival; max(t, SIT) and min(prune, t + w) of the points compared so far


class SlotIndex(NamedTuple):
    """The index that finds the slots which dominate a point, or are dominated by it."""

    bitmaps: NDArray[np.uint64]  # of full blocks
    bounds: NDArray[np.uint8]  # (2 * blocks, d): the least, then the greatest ranks of each full block
    tiles: NDArray[np.uint8]  # of the open block
    present: NDArray[np.uint64]  # a bit per slot: stored and not pruned


class ArrivingPoints(NamedTuple):
    """The arrivals in one block of slots, while they are compared with older blocks."""

    tiles: NDArray[np.uint8]  # their ranks
    going: NDArray[np.uint64]  # a bit per slot: no dominator has been found yet
    window: int


def empty_slots(room: int, d: int) -> PointSlots:
    """Return slots for `room` points, a multiple of 512."""
    return PointSlots(np.empty((room, d)), np.empty((room, d), np.uint8), np.empty((3, room), np.int64))


def empty_index(room: int, d: int) -> SlotIndex:
    """Return an empty index of `room` slots, a multiple of 512."""
    blocks = room // BLOCK
    return SlotIndex(
        np.empty(blocks * block_words(d, grain(d)), np.uint64),
        np.empty((2 * blocks, d), np.uint8),
        empty_tiles(BLOCK, d),
        np.zeros(blocks * WORDS, np.uint64),
    )


@kernel
def _dominated_by(points: FloatArray, word: int, lanes: np.uint64, s: int) -> np.uint64:
    """Return those of the given lanes of a word of slots that slot s dominates."""
    out = NONE
    while lanes != NONE:
        if dominates(points, s, word * LANES + first_bit(lanes)):
            out |= lanes & (~lanes + ONE)
        lanes &= lanes - ONE
    return out


@kernel
def _end_stays(clocks: IntArray, word: int, lanes: np.uint64, now: int) -> None:
    """Set END of the given lanes of a word of slots to `now`, unless it is earlier."""
    while lanes != NONE:
        other = word * LANES + first_bit(lanes)
        clocks[END, other] = min(clocks[END, other], now)
        lanes &= lanes - ONE


@kernel
def _youngest_dominator(points: FloatArray, word: int, lanes: np.uint64, s: int) -> int:
    """Return the slot of the last of the given lanes of a word of slots that dominates slot s, or -1."""
    while lanes != NONE:
        lane = last_bit(lanes)
        if dominates(points, word * LANES + lane, s):
            return int(word * LANES + lane)
        lanes ^= ONE << np.uint64(lane)
    return -1


@kernel
def _twin(points: FloatArray, word: int, lanes: np.uint64, s: int) -> int:
    """Return the slot of one of the given lanes of a word of slots that equals slot s, or -1."""
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
def _store(slots: PointSlots, index: SlotIndex, begin: int, end: int) -> None:
    """Add slots begin..end - 1, the next ones, to the index."""
    ranks = slots.ranks
    tiles, present = index.tiles, index.present
    for s in range(begin, end):
        put_ranks(tiles, s % BLOCK, ranks, s)
        present[s // LANES] |= ONE << np.uint64(s % LANES)
        if s % BLOCK == BLOCK - 1:
            _close_block(ranks, index, s // BLOCK)


@kernel
def _close_block(ranks: NDArray[np.uint8], index: SlotIndex, b: int) -> None:
    """Compute bitmaps and bounds of the open block, which is full, and clear the tiles."""
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
    slots: PointSlots, index: SlotIndex, block: int, arrivals: ArrivingPoints, span: tuple[int, int], stored: bool
) -> None:
    """Compare the arrivals in the slots of `span`, inside one block, with the open block.

    With `stored`, arrivals are stored in the open block, and so compared with one another. Arrivals without a dominator
    are put into `arrivals`.
    """
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
def _pass_full_blocks(
    slots: PointSlots, index: SlotIndex, blocks: tuple[int, int], arrivals: ArrivingPoints, begin: int
) -> None:
    """Compare arrivals, whose block begins with slot `begin`, with the full blocks of a half-open range, newest first.

    The words of each block that may hold related points are found first, then their points are compared.
    """
    points, ranks, clocks = slots
    bitmaps, bounds, _, present = index
    tiles, going, window = arrivals
    oldest, newest = blocks
    d = ranks.shape[1]
    shift = grain(d)
    near = np.empty(BLOCK, np.uint64)  # for each arrival, the mask of the words of a block to compare
    looking = np.empty(WORDS, np.uint64)  # a bit for each arrival with such words
    for b in range(newest - 1, oldest - 1, -1):
        at = b * block_words(d, shift)
        for w in range(WORDS):
            looking[w] = NONE
            if going[w] == NONE:
                continue
            to = w * LANES
            low = lanes_ge(tiles, to * d, bounds, 2 * b + _LEAST) & going[w]
            high = lanes_le(tiles, to * d, bounds, 2 * b + _MOST) & going[w]
            some = find_words_around(low & high, near, to, bitmaps, b, ranks, begin + to, present)
            some |= find_words_beneath(low & ~high, near, to, bitmaps, b, ranks, begin + to, present)
            some |= find_words_beyond(high & ~low, near, to, bitmaps, b, ranks, begin + to, present)
            looking[w] = some
        # in order of time: of several arrivals that dominate a point, the first prunes it
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
                        # a point that dominated the twin after its arrival would have pruned it: its start holds for s
                        by = _twin(points, word, twins, s)
                        until = clocks[START, by] if by >= 0 else np.int64(0)
                    if by >= 0:
                        clocks[START, s] = max(clocks[START, s], until)
                        going[arrival // LANES] &= ~(ONE << np.uint64(arrival % LANES))
                        break


@kernel
def _first_block(slots: PointSlots, size: int, begin: int, window: int) -> int:
    """Return the block of the oldest of the first `size` slots that is in the window when slot `begin` arrives."""
    times = slots.clocks[TIME]
    return int(np.searchsorted(times[:size], times[begin] - window, "right")) // BLOCK


@kernel
def _arrivals(d: int, window: int) -> ArrivingPoints:
    return ArrivingPoints(empty_tiles(BLOCK, d), np.zeros(WORDS, np.uint64), window)


@kernel
def absorb(slots: PointSlots, index: SlotIndex, begin: int, end: int, window: int) -> None:
    """Store the arrivals in slots begin..end - 1; compare them with one another and with all slots before.

    Their points, ranks and times must be set, in order of time; starts must be the times, ends the times + window.
    Afterwards the starts and ends of all slots are correct with respect to the points up to `end`.
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
def visit(slots: PointSlots, index: SlotIndex, begin: int, end: int, window: int) -> None:
    """Compare the points in slots begin..end - 1 with all slots before, but not with one another, without storing them.

    Afterwards the starts of these points, and the ends of the stored points, are correct with respect to these points.
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
def absorb_apart(slots: PointSlots, index: SlotIndex, begin: int, end: int, window: int) -> None:
    """Do the same as absorb(), for arrivals of which none dominates another."""
    visit(slots, index, begin, end, window)
    _store(slots, index, begin, end)


@kernel
def rebuild(slots: PointSlots, index: SlotIndex, size: int) -> None:
    """Rebuild the index of the first `size` slots, all of them present."""
    index.present[:] = NONE
    index.tiles[:] = EMPTY
    _store(slots, index, 0, size)
