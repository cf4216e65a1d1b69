"""Sort-filter skyline: points in Z-order, each tested against the skyline points before it, 512 or 64 at a time.

The skyline points found so far are the members. Every 512 members become a bitmap block; the latest ones, fewer than
512, are stored in byte tiles. Candidates are processed in groups: a whole group passes one block after another, so that
each block is read from the nearest cache. The remaining candidates are compared with the tiles one by one, and those
that are not dominated are added to the tiles.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import (
    BLOCK,
    FINE,
    WORDS,
    Blocks,
    block_words,
    fill_block,
    word_dominates,
    words_at_most,
    words_lower,
)
from skypane.kernels.byte_ranks import EMPTY
from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import any_dominates
from skypane.kernels.simd import LANES, NONE, ONE, lanes_le
from skypane.kernels.tiles import empty_tiles, put_ranks
from skypane.kernels.z_order import Candidates, in_z_order, without_repeats
from skypane.types import BoolArray, FloatArray, IntArray

_SMALLEST_GROUP: Final = 512  # candidates
_LARGEST_GROUP: Final = 4096
_FIRST_BLOCKS: Final = 4


@kernel
def _pass_blocks(blocks: Blocks, begin: int, end: int, candidates: Candidates, group: IntArray) -> int:
    """Remove the candidates of a group that blocks begin..end - 1 dominate; return the number left, at its front."""
    ranks = candidates.ranks
    d = ranks.shape[1]
    bitmaps = blocks.bitmaps
    floors = blocks.floors
    left = len(group)
    near = np.empty(left, np.uint64)  # for each candidate, the mask of the current 64 blocks whose floor is <= it
    for b in range(begin, end):
        at = b * block_words(d, FINE)
        bit = np.uint64(b % LANES)
        if bit == NONE or b == begin:
            for g in range(left):
                near[g] = lanes_le(floors, b // LANES * LANES * d, ranks, group[g])
        stay = 0
        for g in range(left):
            k = group[g]
            if (near[g] >> bit) & ONE != NONE:
                words = words_at_most(bitmaps, at, ranks, k)
                if words != NONE and (
                    words_lower(bitmaps, at, ranks, k) != NONE or word_dominates(blocks, b, words, candidates, k)
                ):
                    continue
            group[stay] = k
            near[stay] = near[g]
            stay += 1
        left = stay
    return left


@kernel
def _with_room(bitmaps: NDArray[np.uint64], full: int, words: int) -> NDArray[np.uint64]:
    """Return `bitmaps`, or a copy with twice the room if one more block does not fit."""
    if (full + 1) * words <= bitmaps.shape[0]:
        return bitmaps
    out = np.empty(max(_FIRST_BLOCKS, 2 * full) * words, np.uint64)
    for i in range(full * words):
        out[i] = bitmaps[i]
    return out


@kernel
def _put_floor(floors: NDArray[np.uint8], b: int, tiles: NDArray[np.uint8], d: int) -> None:
    """Write the floor of block b, the least rank of each column over its tiles; floors are stored as tiles."""
    for j in range(d):
        least = np.uint8(EMPTY)
        for w in range(WORDS):
            for lane in range(LANES):
                least = min(least, tiles[(w * d + j) * LANES + lane])
        floors[(b // LANES * d + j) * LANES + b % LANES] = least


@kernel
def _add_block(blocks: Blocks, full: int, tiles: NDArray[np.uint8], members: IntArray) -> Blocks:
    """Create block `full` from eight full tiles and their members."""
    d = tiles.shape[0] // BLOCK
    bitmaps = _with_room(blocks.bitmaps, full, block_words(d, FINE))
    fill_block(bitmaps, full * block_words(d, FINE), tiles, d, FINE)
    _put_floor(blocks.floors, full, tiles, d)
    for i in range(BLOCK):
        blocks.members[full * BLOCK + i] = members[i]
    return Blocks(bitmaps, blocks.floors, blocks.members)


@kernel
def _skyline(candidates: Candidates) -> IntArray:
    """Return the indices of the skyline points of distinct candidates, none of which is dominated by a later one."""
    points, ranks, order = candidates
    n, d = ranks.shape
    blocks = Blocks(np.empty(0, np.uint64), empty_tiles(n // BLOCK + 1, d), np.empty(n, np.int64))
    members = blocks.members
    tiles = empty_tiles(BLOCK, d)
    latest = np.empty(BLOCK, np.int64)
    zero = int(np.int64(0))  # for a literal 0, Numba would compile the callees again
    size = zero
    full = zero
    most = max(_SMALLEST_GROUP, min(_LARGEST_GROUP, n >> 6))  # fewer passes over many blocks, which outgrow all caches
    group = np.empty(most, np.int64)
    for start in range(0, n, most):
        left = min(most, n - start)
        for g in range(left):
            group[g] = start + g
        left = _pass_blocks(blocks, zero, full, candidates, group[:left])
        g = 0
        while g < left:
            k = group[g]
            g += 1
            dominated = False
            for first in range(0, size, LANES):
                lanes = lanes_le(tiles, first * d, ranks, k)
                if lanes != NONE and any_dominates(points, latest, first, lanes, order[k]):
                    dominated = True
                    break
            if dominated:
                continue
            put_ranks(tiles, size, ranks, k)
            latest[size] = order[k]
            size += 1
            if size == BLOCK:
                blocks = _add_block(blocks, full, tiles, latest)
                full += 1
                size = zero
                tiles[:] = EMPTY
                # the rest of the group has not been compared with this block yet
                left = g + _pass_blocks(blocks, full - 1, full, candidates, group[g:left])
    for i in range(size):
        members[full * BLOCK + i] = latest[i]
    return members[: full * BLOCK + size]


@kernel
def _copy_to_repeats(order: IntArray, repeats: BoolArray, keep: BoolArray) -> None:
    for k in range(1, order.shape[0]):
        if repeats[k]:
            keep[order[k]] = keep[order[k - 1]]


def mark_skyline(columns: FloatArray, keep: BoolArray) -> None:
    """Set keep[i] for the skyline rows of frozen (d, n) columns without NaN, n >= 1; `keep` must be all false."""
    ordered = in_z_order(columns)
    different = without_repeats(ordered)
    keep[_skyline(different)] = True
    if different is not ordered.candidates:
        _copy_to_repeats(ordered.candidates.order, ordered.repeats, keep)
