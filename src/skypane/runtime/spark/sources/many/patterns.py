"""Paths of inputs on this machine, and patterns (*, ?, [..], **) for many of them, whatever is read there."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from typing import Any

from skypane.places import Place
from skypane.types import ConfigError

is_pattern = glob.has_magic


def settle(entry: Any, field: str) -> None:
    """Make the path of a frozen entry one from the root, and its name, if it has none, the path.

    Raises ConfigError for a path of another machine, and for a name that many inputs would have.
    """
    path = Place.of(getattr(entry, field), f"{field} of an input").of_this_machine("an input reads")
    object.__setattr__(entry, field, path)
    if is_pattern(path) and entry.name:
        raise ConfigError(f"a pattern finds many inputs, each called by its path; leave out name={entry.name!r}")
    if not is_pattern(path) and not entry.name:
        object.__setattr__(entry, "name", path)


def matches(pattern: str) -> Iterator[str]:
    """Yield the paths that there are now, in order."""
    for path in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - patterns are texts from the root
        yield path.rstrip("/")
