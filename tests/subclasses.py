"""Classes of a package by what they inherit from, so that a test of "every" one leaves none out."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from importlib import import_module
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def concrete(base: type[T], *rooms: ModuleType) -> set[type[T]]:
    """Return the classes of these packages that inherit from `base` and leave no method abstract, with what is inside."""
    for room in rooms:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            import_module(module.name)
    names = tuple(room.__name__ for room in rooms)
    return {
        one
        for one in _below(base)
        if not inspect.isabstract(one)
        and f"{one.__module__}.".startswith(tuple(f"{name}." for name in names))
        and vars(sys.modules[one.__module__]).get(one.__name__)
        is one  # a slotted dataclass is made again from a first one
    }


def _below(base: type[T]) -> set[type[T]]:
    children = set(base.__subclasses__())
    return children.union(*(_below(child) for child in children))
