"""Sort-filter skyline: rows in a monotone order, each tested against the skyline rows before it, 512 or 64 at a time.

The skyline rows found so far are the members. Every 512 of them become a bitmap block; the latest, fewer than 512, lie in
byte tiles. Rows are taken in groups: a group passes block after block, so that a block serves the
whole group from the nearest cache; what is left of it goes row by row through the tiles, and joins them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.blocks import BLOCK, LOWER, SAME, WORDS, block_words, fill_block, rows_below, values_dominate
from skypane.kernels.compiled import kernel
from skypane.kernels.layout import rows_of
from skypane.kernels.order import monotone_order
from skypane.kernels.ranks import EMPTY, byte_ranks
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_le
from skypane.kernels.small import dominates_row
from skypane.kernels.tiles import empty_tiles, put_row
from skypane.types import BoolArray, FloatArray, IntArray

_SMALLEST_GROUP: Final = 512  # rows
_LARGEST_GROUP: Final = 4096
_FIRST_BLOCKS: Final = 4


@kernel
def _tiles_dominate(
    tiles: NDArray[np.uint8],
    rows: FloatArray,
    ranks: NDArray[np.uint8],
    order: IntArray,
    k: int,
    members: IntArray,
    first: int,
    last: int,
) -> bool:
    """Whether a row of the tiles, rows[members[first:last]], dominates row order[k], of ranks[k]."""
    d = ranks.shape[1]
    for at in range(first, last, LANES):
        lanes = lanes_le(tiles, (at - first) * d, ranks, k, d)
        while lanes != NONE:
            if dominates_row(rows, members[at + first_bit(lanes)], order[k]):
                return True
            lanes &= lanes - ONE
    return False


@kernel
def _pass_blocks(
    blocks: NDArray[np.uint64],
    begin: int,
    end: int,
    floors: NDArray[np.uint8],
    rows: FloatArray,
    ranks: NDArray[np.uint8],
    order: IntArray,
    members: IntArray,
    group: IntArray,
    left: int,
) -> int:
    """Remove from group[:left] what a row of blocks begin..end - 1 dominates; return how many are left, at the front."""
    d = ranks.shape[1]
    near = np.empty(left, np.uint64)  # per row, the blocks of the present 64 whose floor is <= the row
    for b in range(begin, end):
        at = b * block_words(d)
        bit = np.uint64(b % LANES)
        if bit == NONE or b == begin:
            for g in range(left):
                near[g] = lanes_le(floors, b // LANES * LANES * d, ranks, group[g], d)
        stay = 0
        for g in range(left):
            k = group[g]
            if (near[g] >> bit) & ONE != NONE:
                words = rows_below(blocks, at, ranks, k, d, SAME)
                if words != NONE and (
                    rows_below(blocks, at, ranks, k, d, LOWER) != NONE
                    or values_dominate(blocks, at, words, rows, ranks, order, k, members, b * BLOCK)
                ):
                    continue
            group[stay] = k
            near[stay] = near[g]
            stay += 1
        left = stay
    return left


@kernel
def _with_room(blocks: NDArray[np.uint64], full: int, words: int) -> NDArray[np.uint64]:
    """Return `blocks`, or a copy of twice the size if there is no room for one more block."""
    if (full + 1) * words <= blocks.shape[0]:
        return blocks
    out = np.empty(max(_FIRST_BLOCKS, 2 * full) * words, np.uint64)
    for i in range(full * words):
        out[i] = blocks[i]
    return out


@kernel
def _put_floor(floors: NDArray[np.uint8], b: int, tiles: NDArray[np.uint8], d: int) -> None:
    """Write row b of the floors, which are tiles too: the least rank of each column over a block's tiles."""
    for j in range(d):
        least = np.uint8(EMPTY)
        for w in range(WORDS):
            for lane in range(LANES):
                least = min(least, tiles[(w * d + j) * LANES + lane])
        floors[(b // LANES * d + j) * LANES + b % LANES] = least


@kernel
def _skyline(rows: FloatArray, ranks: NDArray[np.uint8], order: IntArray) -> IntArray:
    """Skyline of the different rows[order], of which none is dominated by a later one; ranks[k] belong to order[k]."""
    n, d = ranks.shape
    blocks = np.empty(0, np.uint64)
    floors = empty_tiles(n // BLOCK + 1, d)
    tiles = empty_tiles(BLOCK, d)
    members = np.empty(n, np.int64)
    none = int(np.int64(0))  # for a literal 0, Numba would compile the callees once more
    size = none
    full = none
    most = max(_SMALLEST_GROUP, min(_LARGEST_GROUP, n >> 6))  # many blocks outgrow every cache: then fewer passes
    group = np.empty(most, np.int64)
    for start in range(0, n, most):
        left = min(most, n - start)
        for g in range(left):
            group[g] = start + g
        left = _pass_blocks(blocks, none, full, floors, rows, ranks, order, members, group, left)
        g = 0
        while g < left:
            k = group[g]
            g += 1
            if _tiles_dominate(tiles, rows, ranks, order, k, members, full * BLOCK, size):
                continue
            put_row(tiles, size - full * BLOCK, ranks, k)
            members[size] = order[k]
            size += 1
            if size == (full + 1) * BLOCK:
                blocks = _with_room(blocks, full, block_words(d))
                fill_block(blocks, full * block_words(d), tiles, d)
                _put_floor(floors, full, tiles, d)
                full += 1
                tiles[:] = EMPTY
                # the rest of the group has not met this block yet
                rest = group[g:left]
                left = g + _pass_blocks(blocks, full - 1, full, floors, rows, ranks, order, members, rest, left - g)
    return members[:size]


@kernel
def _ranks_in_order(ranks: NDArray[np.uint8], order: IntArray) -> NDArray[np.uint8]:
    out = np.empty((order.shape[0], ranks.shape[1]), np.uint8)
    for k in range(order.shape[0]):
        for j in range(ranks.shape[1]):
            out[k, j] = ranks[order[k], j]
    return out


@kernel
def _copy_to_repeats(order: IntArray, repeats: BoolArray, keep: BoolArray) -> None:
    for k in range(1, order.shape[0]):
        if repeats[k]:
            keep[order[k]] = keep[order[k - 1]]


def mark_skyline(columns: FloatArray, keep: BoolArray) -> None:
    """Set keep[i] for the skyline rows of frozen (d, n) columns without NaN, n >= 1; `keep` comes all false."""
    ranks = byte_ranks(columns)
    rows = rows_of(columns)
    order, repeats = monotone_order(rows, ranks)
    some_repeat = repeats.any()
    firsts = order[~repeats] if some_repeat else order
    keep[_skyline(rows, _ranks_in_order(ranks, firsts), firsts)] = True
    if some_repeat:
        _copy_to_repeats(order, repeats, keep)
