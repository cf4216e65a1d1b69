"""Packages that load their public names on first access (PEP 562).

Spark starts several Python processes for each stream. Most of them need one or two modules of the package, but neither
its public names nor Numba, which takes as long to load as everything else together.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_DUNDERS: Final = frozenset({"__all__", "__version__"})
"""Public names that start with an underscore."""


def package(name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for the package `name`: they expose its modules and the names of `public`."""

    def get(attribute: str) -> Any:
        here, is_public = vars(import_module(name)), attribute in _DUNDERS or not attribute.startswith("_")
        if is_public and find_spec(f"{name}.{attribute}"):
            return import_module(f"{name}.{attribute}")
        if is_public:
            public = import_module(f"{name}.public")
            here.update({each: getattr(public, each) for each in ("__all__", *public.__all__)})
        if attribute not in here:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return here[attribute]

    def names() -> list[str]:
        return sorted(import_module(f"{name}.public").__all__)

    return get, names
