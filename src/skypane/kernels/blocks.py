"""Bitmap blocks: for 512 rows, "who of you is <= this row in every column?" in d loads of one vector register.

A block keeps, for each column and each of 64 rank levels, the set of its rows up to that level, as 512 bits. Its rows
that may dominate a row p are the intersection of the d sets at p's levels; those that certainly do, of the sets one level
lower. It is the bitmap of the Bitmap skyline algorithm (K.-L. Tan, P.-K. Eng, B. C. Ooi, "Efficient progressive skyline
computation", VLDB 2001, section 3), over ranks instead of distinct values, and over blocks that fit a near cache.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.kernels.simd import LANES, NONE, ONE, bytes_le, first_bit, load_vector
from skypane.kernels.small import dominates_row
from skypane.types import FloatArray, IntArray

WORDS: Final = 8
BLOCK: Final = WORDS * LANES
"""Rows per block: one 512-bit register, eight byte tiles."""

SAME: Final = 1
LOWER: Final = 0

_LEVELS: Final = 64
_SHIFT: Final = 2  # rank >> 2 is the level
_COLUMN: Final = (1 + _LEVELS) * WORDS  # words per column: the empty set, then one set per level

_WORD: Final = ir.IntType(64)
_SET: Final = ir.VectorType(_WORD, WORDS)


@kernel
def block_words(d: int) -> int:
    """64-bit words that a block of d columns takes."""
    return d * _COLUMN


@kernel
def fill_block(blocks: NDArray[np.uint64], at: int, tiles: NDArray[np.uint8], d: int) -> None:
    """Write the block at flat index `at` from eight full byte tiles of d vectors each."""
    for j in range(d):
        start = at + j * _COLUMN
        for w in range(WORDS):
            blocks[start + w] = NONE
        for level in range(_LEVELS):
            start += WORDS
            highest = np.uint8((level << _SHIFT) + (1 << _SHIFT) - 1)
            for w in range(WORDS):
                blocks[start + w] = bytes_le(tiles, (w * d + j) * LANES, highest)


@intrinsic
def rows_below(_context: Any, blocks: Any, at: Any, ranks: Any, k: Any, d: Any, bound: Any) -> Any:
    """(blocks, at, ranks, k, d, bound) -> 8-bit mask: which words of the block at flat index `at` have rows below row k.

    Below is in every column: at no higher level (bound = SAME), or at a lower one (bound = LOWER).
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = context.make_array(signature.args[0])(context, builder, args[0])
        rank = context.make_array(signature.args[2])(context, builder, args[2])
        stride = cgutils.unpack_tuple(builder, rank.shape)[1]
        start = builder.mul(args[3], stride)
        base = builder.add(args[1], builder.mul(args[5], ir.Constant(_WORD, WORDS)))
        left = cgutils.alloca_once_value(builder, ir.Constant(_SET, [-1] * WORDS))
        with cgutils.for_range(builder, args[4]) as loop:
            mine = builder.load(builder.gep(rank.data, [builder.add(start, loop.index)]))
            level = builder.lshr(builder.zext(mine, _WORD), ir.Constant(_WORD, _SHIFT))
            column = builder.add(base, builder.mul(loop.index, ir.Constant(_WORD, _COLUMN)))
            word = builder.add(column, builder.mul(level, ir.Constant(_WORD, WORDS)))
            builder.store(builder.and_(builder.load(left), load_vector(builder, block, word, _SET, 8)), left)
        some = builder.icmp_unsigned("!=", builder.load(left), ir.Constant(_SET, [0] * WORDS))
        return builder.zext(builder.bitcast(some, ir.IntType(WORDS)), _WORD)

    return types.uint64(blocks, types.intp, ranks, types.intp, types.intp, types.intp), emit


@kernel
def values_dominate(
    blocks: NDArray[np.uint64],
    at: int,
    words: np.uint64,
    rows: FloatArray,
    ranks: NDArray[np.uint8],
    order: IntArray,
    k: int,
    members: IntArray,
    first: int,
) -> bool:
    """Whether a row of the block, rows[members[first : first + 512]], dominates row order[k], of ranks[k].

    Compares values with the rows that no level excludes; `words` is rows_below(..., SAME).
    """
    while words != NONE:
        w = first_bit(words)
        words &= words - ONE
        left = ~NONE
        for j in range(ranks.shape[1]):
            left &= blocks[at + j * _COLUMN + ((np.int64(ranks[k, j]) >> _SHIFT) + SAME) * WORDS + w]
        while left != NONE:
            if dominates_row(rows, members[first + w * LANES + first_bit(left)], order[k]):
                return True
            left &= left - ONE
    return False
