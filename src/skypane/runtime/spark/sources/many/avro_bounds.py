"""Bounds of the values that a message of Avro may have by its schema: its bytes alone do not bound them.

A short message can declare values within values to any depth if a type contains itself, and an array of any length if
its items take no bytes (nulls, records without fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def contains_itself(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether a type of a parsed schema contains itself; `named` has the types by name."""
    return _recurs(schema, named, frozenset(), set())


def has_free_items(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether a parsed schema has an array whose items take no bytes; `named` has the types by name."""
    return any(_is_free(one["items"], named, frozenset()) for one in _arrays(schema, named, set()))


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


def _arrays(schema: Any, named: Mapping[str, Any], done: set[str]) -> list[Any]:
    schema = _defined(schema, named)
    if (name := _name(schema)) is not None:
        if name in done:
            return []
        done.add(name)
    own = [schema] if isinstance(schema, dict) and schema["type"] == "array" else []
    return own + [one for part in _parts(schema) for one in _arrays(part, named, done)]


def _is_free(schema: Any, named: Mapping[str, Any], around: frozenset[str]) -> bool:
    """Return whether values of a schema take no bytes: those of unions, arrays and maps have one at least."""
    schema = _defined(schema, named)
    if not isinstance(schema, dict):
        return bool(schema == "null")
    match schema["type"]:
        case "record" | "error":
            inner = around | {schema["name"]}
            return schema["name"] in around or all(_is_free(part, named, inner) for part in _parts(schema))
        case "fixed":
            return bool(schema["size"] == 0)
        case "array" | "map" | "enum":
            return False
        case other:
            return _is_free(other, named, around)


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
