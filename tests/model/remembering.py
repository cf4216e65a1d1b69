"""What a program that waits for an answer still remembers: the values that its frames hold, and what they reach."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import FrameType, FunctionType, MappingProxyType
from typing import Any, TypeAlias, cast

import pyarrow as pa
from tests.model.gate import Gate

_ATOMS = frozenset([type(None), bool, int, float, str, bytes])
_NAMED = (Gate, pa.Schema, pa.Table, pa.DataType, type, FunctionType)
Position: TypeAlias = tuple[tuple[str, int], ...]


def plain_frames(plain: Collection[str]) -> list[FrameType]:
    """Return the frames of the caller's callers that stand above all others, outermost first, as far as they are plain.

    plain   names of functions that hold nothing but their variables: no loop over a list that has no name
    """
    chain = list(_frames(sys._getframe(1)))[::-1]
    names = [frame.f_code.co_qualname for frame in chain]
    first = next(at for at, name in enumerate(names) if name in plain)
    last = next(at for at in range(first, len(names)) if names[at] not in plain)
    return chain[first:last]


def position(frames: Sequence[FrameType]) -> Position:
    """Return where the frames are."""
    return tuple((frame.f_code.co_qualname, frame.f_lasti) for frame in frames)


def variables(frames: Sequence[FrameType]) -> Hashable:
    """Return the values of the frames' variables."""
    known = dict[int, tuple[int, Any]]()
    return tuple(_value(dict(frame.f_locals), known) for frame in frames)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _value(value: Any, known: dict[int, tuple[int, Any]]) -> Hashable:
    """Return what distinguishes a value from others; an object that comes again is named by where it came first."""
    if type(value) in _ATOMS or isinstance(value, int | float | str | bytes):
        return cast("Hashable", value)
    if isinstance(value, _NAMED):
        return _named(value)
    if id(value) in known:
        return "as before", known[id(value)][0]
    known[id(value)] = len(known), value  # which keeps it: another would get its id
    return type(value).__qualname__, _parts(value, known)


def _named(value: Any) -> str:
    """Return what distinguishes a value that does not change from others of its kind."""
    if isinstance(value, Gate):
        return "the gate"
    return str(getattr(value, "__qualname__", value))


def _parts(value: Any, known: dict[int, tuple[int, Any]]) -> Hashable:
    if isinstance(value, dict | MappingProxyType):
        return tuple([(_value(key, known), _value(there, known)) for key, there in value.items()])
    if isinstance(value, list | tuple):
        return tuple([_value(there, known) for there in value])
    if isinstance(value, set | frozenset):
        return frozenset(_value(there, known) for there in value)
    if isinstance(value, BaseException):
        return str(value)
    return _value(_attributes(value), known)


def _attributes(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    names, is_frozen = _declared(kind)
    known = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return known if is_frozen else {**known, **getattr(value, "__dict__", {})}


@cache
def _declared(kind: type) -> tuple[tuple[str, ...], bool]:
    """Return the names that a class declares for its values, and whether these are all that distinguishes one from another.

    So it is in a frozen dataclass: what else there is are properties that were worked out before.
    """
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return tuple(there.name for there in fields(kind)), True
    return tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ())), False
