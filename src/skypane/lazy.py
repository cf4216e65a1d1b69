"""Packages that load their names when the first is asked for (PEP 562).

Spark starts several Python processes for each stream. Most of them need a room or two of the package, and neither its names
nor Numba, whose loading takes as long as all the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_ASKED_FOR: Final = frozenset({"__all__", "__version__"})
"""Of the names with underscores, those that are public."""


def package(name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the package `name`: it has the names of its module `public`, and its modules."""

    def get(asked: str) -> Any:
        here, is_public = vars(import_module(name)), asked in _ASKED_FOR or not asked.startswith("_")
        if is_public and find_spec(f"{name}.{asked}"):
            return import_module(f"{name}.{asked}")
        if is_public:
            public = import_module(f"{name}.public")
            here.update({each: getattr(public, each) for each in ("__all__", *public.__all__)})
        if asked not in here:
            raise AttributeError(f"module {name!r} has no attribute {asked!r}")
        return here[asked]

    def names() -> list[str]:
        return sorted(import_module(f"{name}.public").__all__)

    return get, names
