"""Paths of inputs on this machine, and patterns (*, ?, [..], **) for many of them, whatever is read there."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self
from urllib.parse import quote

from skypane.naming import printable
from skypane.places import Place
from skypane.types import ConfigError


class AtPath:
    """An entry of the list that is a path, or a pattern for many.

    A frozen dataclass with the field of its kind's name, `name`, and `exact`, whether *, ? and [ in the path are letters.
    """

    __slots__ = ()

    kind: ClassVar[str]
    name: str
    exact: bool

    def settle(self) -> None:
        """Make the path one from the root, and the name, if there is none, the path.

        Raises ConfigError for a path of another machine, and for a name that many inputs would have.
        """
        path = Place.of(self.identity, f"{self.kind} of an input").of_this_machine("an input reads")
        object.__setattr__(self, self.kind, path)
        if self.is_pattern and self.name:
            raise ConfigError(f"a pattern finds many inputs, each called by its path; leave out name={self.name!r}")
        if not self.is_pattern and not self.name:
            object.__setattr__(self, "name", called(path))

    @property
    def is_pattern(self) -> bool:
        return not self.exact and glob.has_magic(self.identity)

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({self.name, self.identity} - {""})

    @property
    def identity(self) -> str:
        """The path or pattern."""
        path: str = getattr(self, self.kind)
        return path

    def is_input(self, path: str) -> bool:  # noqa: ARG002 - a kind may look
        """Return whether what a pattern has found is an input."""
        return True

    def found(self) -> Iterator[Self]:
        """Yield the inputs that there are now: itself, or what the pattern finds."""
        if not self.is_pattern:
            yield self
            return
        for path in filter(self.is_input, matches(self.identity)):
            entry: Any = self
            yield replace(entry, **{self.kind: path, "name": called(path), "exact": True})


def called(path: str) -> str:
    """Return what a path is called where people read it: itself, or in %XX if there is in it what no one can read.

    Two paths never have one name: a path begins with /.
    """
    return path if printable(path) == path and not {"\n", "\t"} & set(path) else f"file://{quote(os.fsencode(path))}"


def matches(pattern: str) -> Iterator[str]:
    """Yield the paths that there are now, in order."""
    for path in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - patterns are texts from the root
        yield path.rstrip("/")
