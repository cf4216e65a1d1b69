"""States of control laws as JSON values and back; what does not fit is refused with the name of the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from skypane.types import CheckpointError, ConfigError

T = TypeVar("T")


class JsonState:
    """Base of frozen dataclasses that go into the ledger.

    Their fields are numbers, texts, None, tuples of one kind, dictionaries by whole numbers, or others of their kind.
    """

    __slots__ = ()


def to_json(value: Any) -> Any:
    """Return a dataclass as plain JSON, with whatever it holds."""
    if is_dataclass(value):
        return {item.name: to_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(entry) for key, entry in value.items()}
    return [to_json(entry) for entry in value] if isinstance(value, tuple | list) else value


def from_json(kind: type[T], snapshot: Any) -> T:
    """Return the `kind` that to_json() made this of; raise CheckpointError if it made none."""
    try:
        return cast("T", _read(kind, snapshot, ""))
    except (_MisfitError, ConfigError) as error:
        raise CheckpointError(f"{kind.__name__} in the checkpoint: {error}") from None


class _MisfitError(Exception):
    """A value that is not what its field takes."""

    def __init__(self, where: str, needed: str, got: Any) -> None:
        super().__init__(f"{where.removeprefix('.') or 'it'}: need {needed}, got {got!r}")


def _read(kind: Any, value: Any, where: str) -> Any:
    """Return `value`, which stands at `where`, as a `kind`."""
    arguments = get_args(kind)
    if is_dataclass(kind):
        return _read_fields(kind, value, where)
    if NoneType in arguments:
        (other,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else _read(other, value, where)
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_read(arguments[0], entry, f"{where}.{at}") for at, entry in enumerate(value))
    if get_origin(kind) is dict and isinstance(value, Mapping):
        return {_key(key, where): _read(arguments[1], entry, f"{where}.{key}") for key, entry in value.items()}
    if kind is float and type(value) in {int, float} and math.isfinite(value):
        return value
    if kind in {int, str, bool} and type(value) is kind:
        return value
    raise _MisfitError(where, _NEEDED.get(get_origin(kind) or kind, str(kind)), value)


_NEEDED = {float: "a finite number", int: "a whole number", str: "a text", bool: "true or false", tuple: "a list",
           dict: "an object"}  # fmt: skip


def _read_fields(kind: Any, value: Any, where: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, Mapping):
        raise _MisfitError(where, "an object", value)
    for name in sorted(value.keys() ^ hints.keys(), key=str):
        raise _MisfitError(f"{where}.{name}", "it left out" if name in value else "it given", value.get(name))
    return kind(**{name: _read(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {item.name: known[item.name] for item in fields(kind)}


def _key(key: Any, where: str) -> int:
    try:
        return int(key)
    except ValueError:
        raise _MisfitError(where, "whole numbers as keys", key) from None
