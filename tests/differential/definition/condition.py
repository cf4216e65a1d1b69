"""Conditions on rows, with SQL's nulls: true, false or None; NaN equals itself and is larger than any other number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.definition.values import is_nan


def holds(tree: Any, row: Mapping[str, Any]) -> bool | None:
    """Return whether a condition is true of a row."""
    match tree:
        case ("and" | "or" as word, *parts):
            found, decides = [holds(part, row) for part in parts], word == "or"
            return decides if decides in found else None if None in found else not decides
        case ("not", part):
            value = holds(part, row)
            return None if value is None else not value
        case ("null", column):
            return row[column] is None
        case ("in", column, listed):
            return None if row[column] is None else row[column] in listed
        case (operation, column, constant):
            return None if row[column] is None else _compared(operation, row[column], constant)
    raise AssertionError(tree)


def _compared(operation: str, left: Any, right: Any) -> bool:
    greater, equal = (False, True) if is_nan(left) and is_nan(right) else (is_nan(left), False)
    if not is_nan(left) and not is_nan(right):
        greater, equal = left > right, left == right
    return {
        "<": not greater and not equal,
        "<=": not greater,
        ">": greater,
        ">=": greater or equal,
        "==": equal,
        "!=": not equal,
    }[operation]
