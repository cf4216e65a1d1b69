"""Vector comparisons and bit counts as Numba intrinsics.

Numba's auto-vectoriser does not turn "which of these 64 bytes are <= q" into vector comparisons, so the few operations
that dominate the cost of the kernels emit LLVM vector IR themselves. LLVM splits vectors that are wider than the
machine's, so the same code runs with AVX-512, AVX2, SSE and NEON. No operation checks bounds: the caller guarantees
that all lanes exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES: Final = 64
"""Bytes compared at once: one AVX-512 register, and one 64-bit mask."""

_BYTE: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_DOUBLE: Final = ir.DoubleType()


def load_vector(builder: Any, array: Any, offset: Any, vector: ir.VectorType, alignment: int) -> Any:
    """Load `vector.count` consecutive elements of a C-contiguous array, from flat index `offset`."""
    pointer = builder.gep(array.data, [offset])
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=alignment)


def _splat(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """Return a vector with `value` in all lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_I32, 0))
    lanes = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)


def _compare(predicate: str, lanes: int, element: ir.Type, alignment: int, mask: types.Integer) -> Callable[..., Any]:
    """Build f(array, offset, value) -> mask, whose bit i is set if `array.flat[offset + i] <predicate> value`."""
    vector = ir.VectorType(element, lanes)
    is_float = element is _DOUBLE

    @intrinsic
    def compare(_context: Any, array: Any, offset: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            left = load_vector(builder, view, args[1], vector, alignment)
            right = _splat(builder, args[2], vector)
            test = builder.fcmp_ordered if is_float else builder.icmp_unsigned
            return builder.bitcast(test(predicate, left, right), ir.IntType(lanes))

        return mask(array, types.intp, array.dtype), emit

    return compare  # type: ignore[no-any-return]


bytes_le = _compare("<=", LANES, _BYTE, 1, types.uint64)
"""(uint8 array, offset, q) -> 64-bit mask of the bytes from offset on that are <= q."""

floats_gt = _compare(">", 16, _DOUBLE, 8, types.uint16)
"""(float64 array, offset, x) -> 16-bit mask of the values from offset on that are > x; false for NaN."""

floats_ge = _compare(">=", 16, _DOUBLE, 8, types.uint16)
"""(float64 array, offset, x) -> 16-bit mask of the values from offset on that are >= x; false for NaN."""

floats_le = _compare("<=", 16, _DOUBLE, 8, types.uint16)
"""(float64 array, offset, x) -> 16-bit mask of the values from offset on that are <= x; false for NaN."""


def _count_columns(predicate: str, over: Callable[..., Any], result: types.Integer) -> Callable[..., Any]:
    """Build f(tiles, offset, ranks, k, m): count, per lane, the columns in which a tile's byte <predicate> ranks[k]'s.

    `ranks` is (n, d), d <= 254; a tile is d vectors of 64 bytes, one per column, from flat index `offset` on.
    `over` computes the result from the 64 counts and m.
    """
    vector = ir.VectorType(_BYTE, LANES)

    @intrinsic
    def count(_context: Any, tiles: Any, offset: Any, ranks: Any, k: Any, m: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            tile = context.make_array(signature.args[0])(context, builder, args[0])
            rank = context.make_array(signature.args[2])(context, builder, args[2])
            d = cgutils.unpack_tuple(builder, rank.shape)[1]
            start = builder.mul(args[3], d)
            counts = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * LANES))
            with cgutils.for_range(builder, d) as loop:
                at = builder.add(args[1], builder.mul(loop.index, ir.Constant(loop.index.type, LANES)))
                left = load_vector(builder, tile, at, vector, 1)
                mine = builder.load(builder.gep(rank.data, [builder.add(start, loop.index)]))
                hit = builder.icmp_unsigned(predicate, left, _splat(builder, mine, vector))
                # true is -1 as a signed byte, so subtracting the mask adds one to its lanes
                builder.store(builder.sub(builder.load(counts), builder.sext(hit, vector)), counts)
            return over(builder, builder.load(counts), builder.trunc(args[4], _BYTE), vector)

        return result(tiles, types.intp, ranks, types.intp, types.intp), emit

    return count  # type: ignore[no-any-return]


def _lanes_above(builder: Any, counts: Any, m: Any, vector: ir.VectorType) -> Any:
    return builder.bitcast(builder.icmp_unsigned(">", counts, _splat(builder, m, vector)), _I64)


def _largest(builder: Any, counts: Any, m: Any, vector: ir.VectorType) -> Any:
    name = f"llvm.vector.reduce.umax.v{LANES}i8"
    reduce = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_BYTE, [vector]), name)
    return builder.zext(builder.call(reduce, [counts]), _I64)


lanes_le_in_more_than = _count_columns("<=", _lanes_above, types.uint64)
"""(tiles, offset, ranks, k, m) -> mask of the lanes that are <= ranks[k] in more than m columns."""

most_columns_lt = _count_columns("<", _largest, types.intp)
"""(tiles, offset, ranks, k, _) -> the largest number of columns, over the 64 lanes, in which a lane is < ranks[k]."""


def _lanes(excess_of: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[..., Any]:
    """Build f(tiles, offset, ranks, k) -> mask of the lanes of a tile that have no excess in any column.

    `excess_of` returns two vectors; the excess is the first minus the second, where that is positive.
    """
    vector = ir.VectorType(_BYTE, LANES)
    zero = ir.Constant(vector, [0] * LANES)

    @intrinsic
    def lanes(_context: Any, tiles: Any, offset: Any, ranks: Any, k: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            tile = context.make_array(signature.args[0])(context, builder, args[0])
            rank = context.make_array(signature.args[2])(context, builder, args[2])
            d = cgutils.unpack_tuple(builder, rank.shape)[1]
            start = builder.mul(args[3], d)
            subtract = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(vector, [vector, vector]), f"llvm.usub.sat.v{LANES}i8"
            )
            over = cgutils.alloca_once_value(builder, zero)
            with cgutils.for_range(builder, d) as loop:
                at = builder.add(args[1], builder.mul(loop.index, ir.Constant(loop.index.type, LANES)))
                mine = builder.load(builder.gep(rank.data, [builder.add(start, loop.index)]))
                pair = excess_of(load_vector(builder, tile, at, vector, 1), _splat(builder, mine, vector))
                # saturating x - q is 0 where x <= q; bytes stay in vector registers, which masks leave on older CPUs
                builder.store(builder.or_(builder.load(over), builder.call(subtract, pair)), over)
            return builder.bitcast(builder.icmp_unsigned("==", builder.load(over), zero), _I64)

        return types.uint64(tiles, types.intp, ranks, types.intp), emit

    return lanes  # type: ignore[no-any-return]


lanes_le = _lanes(lambda tile, mine: (tile, mine))
"""(tiles, offset, ranks, k) -> mask of the lanes of a tile that are <= ranks[k] in every column."""

lanes_ge = _lanes(lambda tile, mine: (mine, tile))
"""(tiles, offset, ranks, k) -> mask of the lanes of a tile that are >= ranks[k] in every column."""


@contextmanager
def each_bit(builder: Any, mask: Any) -> Iterator[Any]:
    """Emit a loop over the set bits of a 64-bit mask; yield the position of the bit, as a 64-bit value."""
    left = cgutils.alloca_once_value(builder, mask)
    test, body, end = (builder.append_basic_block() for _ in range(3))
    builder.branch(test)
    builder.position_at_end(test)
    bits = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", bits, ir.Constant(_I64, 0)), body, end)
    builder.position_at_end(body)
    yield builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
    builder.store(builder.and_(bits, builder.sub(bits, ir.Constant(_I64, 1))), left)
    builder.branch(test)
    builder.position_at_end(end)


@intrinsic
def first_bit(_context: Any, mask: Any) -> Any:
    """Return the position of the lowest set bit of a uint64 that is not 0."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), emit


@intrinsic
def last_bit(_context: Any, mask: Any) -> Any:
    """Return the position of the highest set bit of a uint64 that is not 0."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(_I64, 63), zeros)

    return types.intp(types.uint64), emit


@intrinsic
def count_bits(_context: Any, mask: Any) -> Any:
    """Return the number of set bits of a uint64."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.intp(types.uint64), emit


NONE: Final = np.uint64(0)
"""The empty mask. Masks must be combined with uint64 only: with an int, Numba converts them to floats."""

ONE: Final = np.uint64(1)
ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
