"""Bounds of the values that a message of Avro may have by its schema: its bytes alone do not bound them.

A short message can declare values within values to any depth if a type contains itself, and an array of any length if
its items take no bytes (nulls, records without fields).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MOST_FREE: Final = 32
"""Values that take no bytes, at most, that come with one value: otherwise a message of a mebibyte has billions."""


def contains_itself(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether a type of a parsed schema contains itself; `named` has the types by name."""
    return _recurs(schema, named, frozenset(), set())


def free_values(schema: Any, named: Mapping[str, Any]) -> float:
    """Return how many values that take no bytes may come with one value of a parsed schema, or with an item within it.

    It is infinite if the items of an array take no bytes themselves.
    """
    most, known = 0.0, dict[str, _Bytes]()

    def found(part: Any) -> _Bytes:
        nonlocal most
        part = _defined(part, named)
        if (name := _name(part)) in known:
            return known[name]
        if name is not None:
            known[name] = _Bytes(takes=False, free=0)  # a value within itself
        one = _of_parts(part, [found(inner) for inner in _parts(part)])
        most = max(most, one.free)
        if name is not None:
            known[name] = one
        return one

    found(schema)
    return most


class _Bytes(NamedTuple):
    """Whether a value takes a byte, and how many values that take none come with it."""

    takes: bool
    free: float


def _of_parts(schema: Any, parts: list[_Bytes]) -> _Bytes:
    """Return the bytes of a value; `parts` are those of the schemas within it."""
    free = [part.free for part in parts]
    if isinstance(schema, list):
        return _Bytes(takes=True, free=max(0, *free, 1) - 1)  # a union begins with a byte
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in {"record", "error"}:
        return _Bytes(any(part.takes for part in parts), sum(free) or int(not parts))
    if kind == "array":
        return _Bytes(takes=True, free=0 if parts[0].takes else math.inf)
    if parts and kind != "map":
        return parts[0]
    nothing = kind == "null" or (kind == "fixed" and not schema["size"])
    return _Bytes(not nothing, int(nothing))


def _recurs(schema: Any, named: Mapping[str, Any], around: frozenset[str], done: set[str]) -> bool:
    """Return whether a type contains itself, or one of those around it; those that are done do not."""
    schema = _defined(schema, named)
    if (name := _name(schema)) is not None:
        if name in around:
            return True
        if name in done:
            return False
        done.add(name)
        around |= {name}
    return any(_recurs(part, named, around, done) for part in _parts(schema))


def _parts(schema: Any) -> list[Any]:
    """Return the schemas within a schema."""
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, dict):
        return []
    match schema["type"]:
        case "record" | "error":
            return [field["type"] for field in schema["fields"]]
        case "array":
            return [schema["items"]]
        case "map":
            return [schema["values"]]
        case inner:
            return [] if isinstance(inner, str) else [inner]


def _defined(schema: Any, named: Mapping[str, Any]) -> Any:
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _name(schema: Any) -> str | None:
    return schema.get("name") if isinstance(schema, dict) else None
