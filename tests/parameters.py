"""Parameters of tests: some in every run, the others among the slow ones; and how many kills, cases or examples are drawn."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def slow_but(always: Collection[Any], values: Iterable[Any], slow: Collection[Any] | None = None) -> list[Any]:
    """Return `values` for `parametrize()`: those of `always` in every run, the others slow; a tuple is of several parameters.

    slow  those that are slow, if not all of the others: what is left waits for the night
    """
    values = list(values)
    assert {*always, *(slow or ())} <= set(values), "a parameter that is tried in every run is one of them"

    def marks(value: Any) -> Any:
        if value in always:
            return ()
        return pytest.mark.slow if slow is None or value in slow else pytest.mark.night

    return [pytest.param(*_each(value), id=_name(value), marks=marks(value)) for value in values]


def times(count: int) -> int:
    """Return how many kills or cases a slow test draws: `count`, or as many times that as TIMES says."""
    return count * int(os.environ.get("TIMES", "1"))


def examples(share: float) -> int:
    """Return how many examples a property draws that takes longer, or less, than others: a share of what the profile says."""
    return max(1, round(share * settings().max_examples))


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _name(value: Any) -> str:
    return "-".join(map(str, _each(value)))
