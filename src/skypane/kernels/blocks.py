"""Bitmap blocks: find which of 512 points are <= a given point in every column by d loads of one vector register.

A block stores, for each column and each of 64 rank levels, the set of its points up to that level, as 512 bits. The
points that may dominate a point p are the intersection of the d sets at p's levels; those that certainly dominate it,
of the sets one level lower. This is the bitmap of the Bitmap skyline algorithm (K.-L. Tan, P.-K. Eng, B. C. Ooi,
"Efficient progressive skyline computation", VLDB 2001, section 3), over ranks instead of distinct values, and over
blocks that fit a near cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.kernels.nested_loops import any_dominates
from skypane.kernels.simd import LANES, NONE, ONE, bytes_le, each_bit, first_bit, load_vector
from skypane.kernels.z_order import Candidates
from skypane.types import IntArray

WORDS: Final = 8
BLOCK: Final = WORDS * LANES
"""Points per block: one 512-bit register, eight byte tiles."""

SAME: Final = 1
LOWER: Final = 0

FINE: Final = 2
COARSE: Final = 3
"""Bits by which a rank is shifted to its level, one of 64 (FINE) or of 32 (COARSE).

With fewer levels, more points are compared in vain, but more columns fit the nearest cache.
"""
_FEW_COLUMNS: Final = 8

_WORD: Final = ir.IntType(64)
_SET: Final = ir.VectorType(_WORD, WORDS)


class Blocks(NamedTuple):
    """Points in blocks; block b holds the points members[512 * b : 512 * (b + 1)]."""

    bitmaps: NDArray[np.uint64]  # block b begins at flat index b * block_words(d, FINE)
    floors: NDArray[np.uint8]  # byte tiles; row b is the least rank of each column over block b
    members: IntArray  # indices of points


@kernel
def grain(d: int) -> int:
    """Return FINE or COARSE, the faster one if blocks of d columns are searched for points below and above."""
    return FINE if d <= _FEW_COLUMNS else COARSE


@kernel
def column_words(shift: int) -> int:
    """Return the 64-bit words of a column: those of the empty set, then of one set per level."""
    return (1 + (256 >> shift)) * WORDS


@kernel
def block_words(d: int, shift: int) -> int:
    """Return the 64-bit words of a block of d columns."""
    return d * column_words(shift)


@kernel
def fill_block(bitmaps: NDArray[np.uint64], at: int, tiles: NDArray[np.uint8], d: int, shift: int) -> None:
    """Write the block at flat index `at` from eight full byte tiles of d vectors each."""
    step = 1 << shift
    for j in range(d):
        start = at + j * column_words(shift)
        for w in range(WORDS):
            bitmaps[start + w] = NONE
        for above in range(step, 256 + step, step):  # the first rank above the level
            start += WORDS
            highest = np.uint8(above - 1)
            for w in range(WORDS):
                bitmaps[start + w] = bytes_le(tiles, (w * d + j) * LANES, highest)


class _Levels:
    """Emits, in an intrinsic, the loop over the columns of a block at the levels of one point's ranks."""

    def __init__(
        self, context: Any, builder: Any, kinds: tuple[Any, Any], bitmaps: Any, ranks: Any, shift: int
    ) -> None:
        self._builder = builder
        self._shift = ir.Constant(_WORD, shift)
        self._words = ir.Constant(_WORD, (1 + (256 >> shift)) * WORDS)
        self._bitmaps = context.make_array(kinds[0])(context, builder, bitmaps)
        self._ranks = context.make_array(kinds[1])(context, builder, ranks)
        self.columns = cgutils.unpack_tuple(builder, self._ranks.shape)[1]

    def begin(self, b: Any) -> Any:
        """Return the flat index of block b."""
        return self._builder.mul(b, self._builder.mul(self.columns, self._words))

    def __call__(self, at: Any, k: Any, use: Callable[[Callable[[int], Any]], None]) -> None:
        """Emit use(load) for each column of the block at flat index `at`.

        load(SAME) is the set of points up to the level of ranks[k] in the column, load(LOWER) the set one level lower.
        """
        builder = self._builder
        start = builder.mul(k, self.columns)
        with cgutils.for_range(builder, self.columns) as loop:
            rank = builder.load(builder.gep(self._ranks.data, [builder.add(start, loop.index)]))
            level = builder.lshr(builder.zext(rank, _WORD), self._shift)
            column = builder.add(at, builder.mul(loop.index, self._words))
            lower = builder.add(column, builder.mul(level, ir.Constant(_WORD, WORDS)))
            use(lambda bound: self._load(builder.add(lower, ir.Constant(_WORD, bound * WORDS))))

    def _load(self, place: Any) -> Any:
        return load_vector(self._builder, self._bitmaps, place, _SET, 8)


def _words_of(builder: Any, points: Any) -> Any:
    """Return the mask of the words of a set that are not empty."""
    some = builder.icmp_unsigned("!=", builder.load(points), ir.Constant(_SET, [0] * WORDS))
    return builder.zext(builder.bitcast(some, ir.IntType(WORDS)), _WORD)


def _words_below(bound: int) -> Callable[..., Any]:
    """Build f(bitmaps, at, ranks, k) -> 8-bit mask of the words of the block at `at` that have points below ranks[k].

    `at` is a flat index. A point is below if its level is not higher (bound = SAME), or is lower (bound = LOWER), in
    every column.
    """

    @intrinsic
    def words(_context: Any, bitmaps: Any, at: Any, ranks: Any, k: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            levels = _Levels(context, builder, (signature.args[0], signature.args[2]), args[0], args[2], FINE)
            left = cgutils.alloca_once_value(builder, ir.Constant(_SET, [-1] * WORDS))
            levels(args[1], args[3], lambda load: builder.store(builder.and_(builder.load(left), load(bound)), left))
            return _words_of(builder, left)

        return types.uint64(bitmaps, types.intp, ranks, types.intp), emit

    return words  # type: ignore[no-any-return]


words_at_most = _words_below(SAME)
words_lower = _words_below(LOWER)


def _find_words(*, below: bool, above: bool) -> Callable[..., Any]:
    """Build f(lanes, near, to, bitmaps, b, ranks, k, present) -> mask of the lanes for which words are found.

    For each lane of the mask `lanes`, near[to + lane] becomes the 16-bit mask of the words of block b with points that no
    level excludes. With `below`, bits 0 to 7 are for points whose level exceeds that of ranks[k + lane] in no column;
    with `above`, bits 8 to 15 are for points whose level is lower in no column. All blocks have the grain of their
    columns. Only points whose bits are set in the words of the block in `present` count.
    """

    @intrinsic
    def find(
        _context: Any, lanes: Any, near: Any, to: Any, bitmaps: Any, b: Any, ranks: Any, k: Any, present: Any
    ) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            named = context.make_array(signature.args[7])(context, builder, args[7])
            found = context.make_array(signature.args[1])(context, builder, args[1]).data
            some = load_vector(builder, named, builder.mul(args[4], ir.Constant(_WORD, WORDS)), _SET, 8)
            none = ir.Constant(_SET, [0] * WORDS)
            low, high = (cgutils.alloca_once(builder, _SET) for _ in range(2))
            looking = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))

            def narrow(load: Callable[[int], Any]) -> None:
                if below:
                    builder.store(builder.and_(builder.load(low), load(SAME)), low)
                if above:
                    builder.store(builder.and_(builder.load(high), builder.not_(load(LOWER))), high)

            def note(lane: Any, mask: Any) -> None:
                builder.store(mask, builder.gep(found, [builder.add(args[2], lane)]))
                bit = builder.zext(builder.icmp_unsigned("!=", mask, ir.Constant(_WORD, 0)), _WORD)
                builder.store(builder.or_(builder.load(looking), builder.shl(bit, lane)), looking)

            kinds = (signature.args[3], signature.args[5])
            grains = [_Levels(context, builder, kinds, args[3], args[5], bits) for bits in (FINE, COARSE)]
            fine = builder.icmp_unsigned("<=", grains[0].columns, ir.Constant(_WORD, _FEW_COLUMNS))
            # each grain has its own loop: constant shifts make it an eighth faster
            with builder.if_else(fine) as branches:
                for branch, levels in zip(branches, grains, strict=True):
                    with branch, each_bit(builder, args[0]) as lane:
                        builder.store(some if below else none, low)
                        builder.store(some if above else none, high)
                        levels(levels.begin(args[4]), builder.add(args[6], lane), narrow)
                        shifted = builder.shl(_words_of(builder, high), ir.Constant(_WORD, WORDS))
                        note(lane, builder.or_(_words_of(builder, low), shifted))
            return builder.load(looking)

        arguments = (types.uint64, near, types.intp, bitmaps, types.intp, ranks, types.intp, present)
        return types.uint64(*arguments), emit

    return find  # type: ignore[no-any-return]


find_words_around = _find_words(below=True, above=True)
find_words_beneath = _find_words(below=True, above=False)
find_words_beyond = _find_words(below=False, above=True)


@kernel
def points_below(
    bitmaps: NDArray[np.uint64], at: int, w: int, ranks: NDArray[np.uint8], k: int, shift: int
) -> np.uint64:
    """Return the lanes of word w of the block at flat index `at` whose level exceeds that of ranks[k] in no column."""
    words = column_words(shift)
    left = ~NONE
    for j in range(ranks.shape[1]):
        left &= bitmaps[at + j * words + ((np.int64(ranks[k, j]) >> shift) + SAME) * WORDS + w]
    return left


@kernel
def points_above(
    bitmaps: NDArray[np.uint64], at: int, w: int, ranks: NDArray[np.uint8], k: int, shift: int
) -> np.uint64:
    """Return the lanes of word w of the block at flat index `at` whose level is below that of ranks[k] in no column.

    Empty lanes are included.
    """
    words = column_words(shift)
    left = ~NONE
    for j in range(ranks.shape[1]):
        left &= ~bitmaps[at + j * words + ((np.int64(ranks[k, j]) >> shift) + LOWER) * WORDS + w]
    return left


@kernel
def word_dominates(blocks: Blocks, b: int, words: np.uint64, candidates: Candidates, k: int) -> bool:
    """Return whether a point in one of the words of block b dominates candidate k; `words` is words_at_most's mask.

    Only points whose levels do not exclude dominance are compared.
    """
    points, ranks, order = candidates
    bitmaps = blocks.bitmaps
    at = b * block_words(ranks.shape[1], FINE)
    while words != NONE:
        w = first_bit(words)
        words &= words - ONE
        left = points_below(bitmaps, at, w, ranks, k, FINE)
        if any_dominates(points, blocks.members, b * BLOCK + w * LANES, left, order[k]):
            return True
    return False
