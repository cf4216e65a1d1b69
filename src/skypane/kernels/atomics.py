"""Atomic operations on int64 arrays, for kernels that run in several threads without the GIL.

All are sequentially consistent but publish(), a release, which costs a plain store. Arrays are one-dimensional, contiguous
int64; any other is an error when the kernel is compiled. None checks bounds: the caller guarantees that the index exists.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

_WORDS = types.int64


def _checked(array: Any) -> None:
    if not (isinstance(array, types.Array) and array.dtype == _WORDS and array.ndim == 1 and array.layout == "C"):
        raise TypingError(f"atomics need a one-dimensional contiguous int64 array, got {array}")


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(context.make_array(signature.args[0])(context, builder, args[0]).data, [args[1]])


@intrinsic
def load(_context: Any, array: Any, _at: Any) -> Any:
    """Load the word at an index: load(array, at)."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args), ordering="seq_cst", align=8)

    return _WORDS(array, types.intp), emit


@intrinsic
def store(_context: Any, array: Any, _at: Any, _word: Any) -> Any:
    """Store a word, store(array, at, word): later loads of this thread are not moved before it."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _address(context, builder, signature, args), ordering="seq_cst", align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _WORDS), emit


@intrinsic
def publish(_context: Any, array: Any, _at: Any, _word: Any) -> Any:
    """Store a word, publish(array, at, word): who loads the word sees all that this thread has written before."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _address(context, builder, signature, args), ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _WORDS), emit


@intrinsic
def swap_if(_context: Any, array: Any, _at: Any, _old: Any, _new: Any) -> Any:
    """Compare and swap, swap_if(array, at, old, new): whether `old` stood there, and `new` does now."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args)
        done = builder.cmpxchg(address, args[2], args[3], ordering="seq_cst", failordering="seq_cst")
        return builder.extract_value(done, 1)

    return types.boolean(array, types.intp, _WORDS, _WORDS), emit


@intrinsic
def add(_context: Any, array: Any, _at: Any, _amount: Any) -> Any:
    """Add to a word, add(array, at, amount): what stood there before."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, signature, args), args[2], ordering="seq_cst")

    return _WORDS(array, types.intp, _WORDS), emit
