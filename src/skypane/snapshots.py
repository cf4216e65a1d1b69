"""Serialise frozen values to JSON and back by the types of their fields: policy states, metrics, task reports.

    value                        in JSON
    dataclass                    object, a key for each field
    named tuple, tuple           array
    mapping by numbers or texts  object
    number, text, bool, None     the same
    a class with snapshot() and restored()   what snapshot() returns

A value that does not fit its field raises an error that names the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from skypane.types import CheckpointError, ConfigError, Length

T = TypeVar("T")
Read = Callable[[Any], Any]

ADDED: Final[Mapping[str, bool]] = {"added": True}
"""Metadata of a field that checkpoints of earlier versions lack: if it is missing, it gets its default."""


def renamed(was: str) -> dict[str, str]:
    """Return the metadata of a field that checkpoints of earlier versions have under the name `was`."""
    return {"was": was}


class JsonState:
    """Marker of frozen dataclasses that are written to the ledger."""

    __slots__ = ()


def to_json(value: Any) -> Any:
    """Return a value, with all nested values, as plain JSON."""
    if hasattr(value, "snapshot"):
        return value.snapshot()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(entry) for key, entry in value.items()}
    return [to_json(entry) for entry in value] if isinstance(value, tuple | list) else value


def through_json(value: T) -> T:
    """Return a JSON value after a round trip through its text, which turns tuples into lists."""
    read: T = json.loads(json.dumps(value))
    return read


def from_json(kind: type[T], value: Any) -> T:
    """Return the `kind` that to_json() wrote as `value`; raise CheckpointError, naming the field, on a misfit."""
    return _checked(kind, _reader(cast("Any", kind)), value)


def fields_to_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as a JSON object, one key for each field; for classes with their own snapshot()."""
    return {item.name: to_json(getattr(value, item.name)) for item in fields(value)}


def fields_from_json(kind: type[T], value: Any, *, lenient: bool = False) -> T:
    """Return the dataclass that fields_to_json() wrote; for classes with a restored(). Errors: see from_json().

    lenient   ignore unknown keys, and use the defaults of missing fields
    """
    return _checked(kind, _fields_reader(cast("Any", kind), lenient), value)


def _checked(kind: type[T], read: Read, value: Any) -> T:
    try:
        return cast("T", read(value))
    except (_MisfitError, ConfigError) as error:
        raise CheckpointError(f"{kind.__name__} in the checkpoint: {error}") from None


class _MisfitError(Exception):
    """A value that does not fit its field; `path` holds the names of the fields that lead to it, outermost first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.path: list[str] = []

    def __str__(self) -> str:
        problem: str = self.args[0]
        return f"{'.'.join(self.path)}: {problem}" if self.path else problem


def _need(needed: str, got: Any) -> _MisfitError:
    return _MisfitError(f"need {needed}, got {got!r}")


@cache
def _reader(kind: Any) -> Read:
    """Return the function that reads a value of this type from JSON."""
    if hasattr(kind, "restored"):
        return cast("Read", kind.restored)
    if is_dataclass(get_origin(kind) or kind):
        return _fields_reader(get_origin(kind) or kind)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        read = _tuple_reader([_reader(hints[name]) for name in kind._fields])
        return lambda value: kind(*read(value))
    return _generic_reader(kind, get_origin(kind) or kind, get_args(kind))


def _generic_reader(kind: Any, origin: Any, arguments: tuple[Any, ...]) -> Read:
    if NoneType in arguments:
        (other,) = (_reader(argument) for argument in arguments if argument is not NoneType)
        return lambda value: None if value is None else other(value)
    if origin is tuple:
        return (
            _list_reader(_reader(arguments[0]))
            if arguments[1:] == (...,)
            else _tuple_reader([*map(_reader, arguments)])
        )
    if origin in {dict, Mapping}:
        return _mapping_reader(_key if arguments[0] is int else str, _reader(arguments[1]))
    return _PLAIN[Any if isinstance(kind, TypeVar) else kind]


def _whole(value: Any) -> int:
    if type(value) not in {int, Length}:  # bool is a subclass of int
        raise _need("a whole number", value)
    return cast("int", value)


def _finite(value: Any) -> float:
    if type(value) not in {int, float} or not math.isfinite(value):
        raise _need("a finite number", value)
    return cast("float", value)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _need("a text", value)
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _need("true or false", value)
    return value


def _key(key: Any) -> int:
    try:
        return int(key)
    except ValueError:
        raise _need("whole numbers as keys", key) from None


_PLAIN: Final[Mapping[Any, Read]] = {int: _whole, float: _finite, str: _text, bool: _flag, Any: lambda value: value}


def _inner(read: Read, value: Any, name: Any) -> Any:
    try:
        return read(value)
    except _MisfitError as error:
        raise _at(name, error) from None


def _at(name: Any, error: _MisfitError) -> _MisfitError:
    error.path.insert(0, str(name))
    return error


def _list_reader(read: Read) -> Read:
    def read_list(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _need("a list", value)
        return tuple(_inner(read, entry, at) for at, entry in enumerate(value))

    return read_list


def _tuple_reader(readers: list[Read]) -> Read:
    def read_tuple(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise _need(f"a list of {len(readers)}", value)
        return tuple(_inner(read, entry, at) for at, (read, entry) in enumerate(zip(readers, value, strict=True)))

    return read_tuple


def _mapping_reader(read_key: Read, read: Read) -> Read:
    def read_mapping(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _need("an object", value)
        return {read_key(key): _inner(read, entry, key) for key, entry in value.items()}

    return read_mapping


@cache
def _fields_reader(kind: Any, lenient: bool = False) -> Read:
    hints = get_type_hints(kind)
    readers = {item.name: _reader(hints[item.name]) for item in fields(kind)}
    defaults = {item.name for item in fields(kind) if (item.default, item.default_factory) != (MISSING, MISSING)}
    needed = readers.keys() - (
        defaults if lenient else {item.name for item in fields(kind) if item.metadata.get("added")}
    )

    renamed_from = {item.metadata["was"]: item.name for item in fields(kind) if "was" in item.metadata}

    def read_fields(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _need("an object", value)
        current = {was: name for was, name in renamed_from.items() if name not in value}
        value = {current.get(key, key): entry for key, entry in value.items()} if current else value
        for name in sorted(needed - value.keys()):
            raise _at(name, _MisfitError("is missing"))
        for name in [] if lenient else sorted(value.keys() - readers.keys(), key=str):
            raise _at(name, _MisfitError("is not one of its fields"))
        return kind(**{name: _inner(read, value[name], name) for name, read in readers.items() if name in value})

    return read_fields
