"""Bitmap blocks: for 512 points, "which of you are <= this one in every column?" in d loads of one vector register.

A block keeps, for each column and each of 64 rank levels, the set of its points up to that level, as 512 bits. Those that
may dominate a point p are the intersection of the d sets at p's levels; those that certainly do, of the sets one level
lower. It is the bitmap of the Bitmap skyline algorithm (K.-L. Tan, P.-K. Eng, B. C. Ooi, "Efficient progressive skyline
computation", VLDB 2001, section 3), over ranks instead of distinct values, and over blocks that fit a near cache.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import any_dominates
from skypane.kernels.simd import LANES, NONE, ONE, bytes_le, first_bit, load_vector
from skypane.kernels.z_order import Candidates
from skypane.types import IntArray

WORDS: Final = 8
BLOCK: Final = WORDS * LANES
"""Points per block: one 512-bit register, eight byte tiles."""

SAME: Final = 1
LOWER: Final = 0

_LEVELS: Final = 64
_SHIFT: Final = 2  # rank >> 2 is the level
_COLUMN: Final = (1 + _LEVELS) * WORDS  # words per column: the empty set, then one set per level

_WORD: Final = ir.IntType(64)
_SET: Final = ir.VectorType(_WORD, WORDS)


class Blocks(NamedTuple):
    """Points by blocks; block b holds the points of members[512 * b : 512 * (b + 1)]."""

    bitmaps: NDArray[np.uint64]  # block b from flat index b * block_words(d)
    floors: NDArray[np.uint8]  # byte tiles; row b is the least rank of each column over block b
    members: IntArray  # indices of points


@kernel
def block_words(d: int) -> int:
    """64-bit words that a block of d columns takes."""
    return d * _COLUMN


@kernel
def fill_block(bitmaps: NDArray[np.uint64], at: int, tiles: NDArray[np.uint8], d: int) -> None:
    """Write the block at flat index `at` from eight full byte tiles of d vectors each."""
    for j in range(d):
        start = at + j * _COLUMN
        for w in range(WORDS):
            bitmaps[start + w] = NONE
        for level in range(_LEVELS):
            start += WORDS
            highest = np.uint8((level << _SHIFT) + (1 << _SHIFT) - 1)
            for w in range(WORDS):
                bitmaps[start + w] = bytes_le(tiles, (w * d + j) * LANES, highest)


@intrinsic
def words_below(_context: Any, bitmaps: Any, at: Any, ranks: Any, k: Any, bound: Any) -> Any:
    """(bitmaps, at, ranks, k, bound) -> 8-bit mask: which words of the block at flat index `at` have points below ranks[k].

    Below is in every column: at no higher level (bound = SAME), or at a lower one (bound = LOWER).
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = context.make_array(signature.args[0])(context, builder, args[0])
        rank = context.make_array(signature.args[2])(context, builder, args[2])
        d = cgutils.unpack_tuple(builder, rank.shape)[1]
        start = builder.mul(args[3], d)
        base = builder.add(args[1], builder.mul(args[4], ir.Constant(_WORD, WORDS)))
        left = cgutils.alloca_once_value(builder, ir.Constant(_SET, [-1] * WORDS))
        with cgutils.for_range(builder, d) as loop:
            mine = builder.load(builder.gep(rank.data, [builder.add(start, loop.index)]))
            level = builder.lshr(builder.zext(mine, _WORD), ir.Constant(_WORD, _SHIFT))
            column = builder.add(base, builder.mul(loop.index, ir.Constant(_WORD, _COLUMN)))
            word = builder.add(column, builder.mul(level, ir.Constant(_WORD, WORDS)))
            builder.store(builder.and_(builder.load(left), load_vector(builder, block, word, _SET, 8)), left)
        some = builder.icmp_unsigned("!=", builder.load(left), ir.Constant(_SET, [0] * WORDS))
        return builder.zext(builder.bitcast(some, ir.IntType(WORDS)), _WORD)

    return types.uint64(bitmaps, types.intp, ranks, types.intp, types.intp), emit


@intrinsic
def words_around(_context: Any, bitmaps: Any, at: Any, ranks: Any, k: Any, present: Any, first: Any) -> Any:
    """(bitmaps, at, ranks, k, present, first) -> 16-bit mask: which words have points that no level excludes.

    Bits 0 to 7 are for points at no higher level than ranks[k] in any column, 8 to 15 for those at no lower one; of the
    block at flat index `at` only those points count that the eight words present[first:] name.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = context.make_array(signature.args[0])(context, builder, args[0])
        rank = context.make_array(signature.args[2])(context, builder, args[2])
        d = cgutils.unpack_tuple(builder, rank.shape)[1]
        start = builder.mul(args[3], d)
        named = context.make_array(signature.args[4])(context, builder, args[4])
        some = load_vector(builder, named, args[5], _SET, 8)
        below = cgutils.alloca_once_value(builder, some)
        above = cgutils.alloca_once_value(builder, some)
        with cgutils.for_range(builder, d) as loop:
            mine = builder.load(builder.gep(rank.data, [builder.add(start, loop.index)]))
            level = builder.lshr(builder.zext(mine, _WORD), ir.Constant(_WORD, _SHIFT))
            column = builder.add(args[1], builder.mul(loop.index, ir.Constant(_WORD, _COLUMN)))
            lower = builder.add(column, builder.mul(level, ir.Constant(_WORD, WORDS)))
            same = builder.add(lower, ir.Constant(_WORD, WORDS))
            builder.store(builder.and_(builder.load(below), load_vector(builder, block, same, _SET, 8)), below)
            less = load_vector(builder, block, lower, _SET, 8)
            builder.store(builder.and_(builder.load(above), builder.not_(less)), above)
        none = ir.Constant(_SET, [0] * WORDS)
        masks = [
            builder.zext(
                builder.bitcast(builder.icmp_unsigned("!=", builder.load(side), none), ir.IntType(WORDS)), _WORD
            )
            for side in (below, above)
        ]
        return builder.or_(masks[0], builder.shl(masks[1], ir.Constant(_WORD, WORDS)))

    return types.uint64(bitmaps, types.intp, ranks, types.intp, present, types.intp), emit


@kernel
def points_below(bitmaps: NDArray[np.uint64], at: int, w: int, ranks: NDArray[np.uint8], k: int) -> np.uint64:
    """Lanes of word w, of the block at flat index `at`, at no higher level than ranks[k] in any column."""
    left = ~NONE
    for j in range(ranks.shape[1]):
        left &= bitmaps[at + j * _COLUMN + ((np.int64(ranks[k, j]) >> _SHIFT) + SAME) * WORDS + w]
    return left


@kernel
def points_above(bitmaps: NDArray[np.uint64], at: int, w: int, ranks: NDArray[np.uint8], k: int) -> np.uint64:
    """Lanes of word w, of the block at flat index `at`, at no lower level than ranks[k] in any column; empty lanes too."""
    left = ~NONE
    for j in range(ranks.shape[1]):
        left &= ~bitmaps[at + j * _COLUMN + ((np.int64(ranks[k, j]) >> _SHIFT) + LOWER) * WORDS + w]
    return left


@kernel
def word_dominates(blocks: Blocks, b: int, words: np.uint64, candidates: Candidates, k: int) -> bool:
    """Whether a point in one of these words of block b dominates candidate k; `words` is words_below(..., SAME).

    Points are compared only where levels do not exclude it.
    """
    points, ranks, order = candidates
    bitmaps = blocks.bitmaps
    at = b * block_words(ranks.shape[1])
    while words != NONE:
        w = first_bit(words)
        words &= words - ONE
        left = points_below(bitmaps, at, w, ranks, k)
        if any_dominates(points, blocks.members, b * BLOCK + w * LANES, left, order[k]):
            return True
    return False
