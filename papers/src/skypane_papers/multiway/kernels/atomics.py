"""Atomic operations on int64 arrays, for kernels that run in several threads without the GIL.

All are sequentially consistent except publish(), which is a release and costs a plain store. Arrays must be
one-dimensional, contiguous int64; others raise an error when the kernel is compiled. Indices are not checked; the
caller guarantees them.
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


def _stored(array: Any, ordering: str) -> Any:
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _address(context, builder, signature, args), ordering=ordering, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _WORDS), emit


@intrinsic
def load(_context: Any, array: Any, _at: Any) -> Any:
    """Load a word: array, index."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args), ordering="seq_cst", align=8)

    return _WORDS(array, types.intp), emit


@intrinsic
def store(_context: Any, array: Any, _at: Any, _word: Any) -> Any:
    """Store a word (array, index, word) before all later loads of this thread."""
    return _stored(array, "seq_cst")


@intrinsic
def publish(_context: Any, array: Any, _at: Any, _word: Any) -> Any:
    """Store a word (array, index, word); a thread that loads it sees all earlier writes of this thread."""
    return _stored(array, "release")


@intrinsic
def swap_if(_context: Any, array: Any, _at: Any, _old: Any, _new: Any) -> Any:
    """Compare and swap (array, index, old, new); return whether `old` was replaced by `new`."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args)
        done = builder.cmpxchg(address, args[2], args[3], ordering="seq_cst", failordering="seq_cst")
        return builder.extract_value(done, 1)

    return types.boolean(array, types.intp, _WORDS, _WORDS), emit


@intrinsic
def add(_context: Any, array: Any, _at: Any, _amount: Any) -> Any:
    """Add to a word (array, index, amount), and return its previous value."""
    _checked(array)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, signature, args), args[2], ordering="seq_cst")

    return _WORDS(array, types.intp, _WORDS), emit
