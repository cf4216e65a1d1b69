"""Paths of inputs on this machine, and patterns (*, ?, [..], **) that match many; all kinds on disk share them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self
from urllib.parse import quote

from skypane.control.admission import MetaData
from skypane.locations import Location
from skypane.naming import printable
from skypane.runtime.spark.sources.many.input_kind import InputExtent, plain_meta
from skypane.types import ConfigError


class PathSpec:
    """An entry of the list that is a path, or a pattern that matches many.

    Subclasses are frozen dataclasses with a field named as their kind (the path), a field `name`, a field `meta`, and a
    field `exact`: whether *, ? and [ in the path are literal.
    """

    __slots__ = ()

    kind: ClassVar[str]
    unit: ClassVar[str]
    name: str
    meta: MetaData
    exact: bool

    def settle(self) -> None:
        """Make the path absolute, and use it as the name if none is given.

        Raises ConfigError for a path of another machine, and for a pattern with a name, which many inputs would share.
        """
        path = Location.of(self.identity, f"{self.kind} of an input").of_this_machine("an input reads")
        object.__setattr__(self, self.kind, path)
        if self.is_pattern and self.name:
            raise ConfigError(f"a pattern finds many inputs, each named by its path; leave out name={self.name!r}")
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

    @property
    def origin(self) -> Mapping[str, Any]:
        return {"raw_file": called(self.identity)}

    def plain(self) -> dict[str, Any]:
        entry: Any = self
        values = {item.name: getattr(self, item.name) for item in fields(entry)}
        return values | {"meta": plain_meta(self.meta)}

    def is_input(self, path: str) -> bool:
        """Return whether a path that the pattern matches is an input."""
        return os.path.isfile(path)  # noqa: PTH113 - opening a pipe would block until another process writes to it

    def found(self) -> Iterator[Self]:
        """Yield this entry itself, or one entry for each input that the pattern matches now."""
        if not self.is_pattern:
            yield self
            return
        for path in filter(self.is_input, matches(self.identity)):
            entry: Any = self
            yield replace(entry, **{self.kind: path, "name": called(path), "exact": True})


def existing(listed: Sequence[Any], at: Mapping[str, int], size: Callable[[str], int | None]) -> Iterator[InputExtent]:
    """Yield the files that entries find, each with its size; `size` returns None for a path that does not count yet."""
    for entry in listed:
        for one in entry.found():
            if (last := size(one.identity)) is not None:
                yield InputExtent(one, 0, last, loss_of(one, last, at.get(one.name, 0)))


def loss_of(one: PathSpec, last: int, read: int) -> str:
    """Return what is wrong if a file that ends at `last` was read further before; else an empty text."""
    if last >= read:
        return ""
    return (
        f"{one.identity} has {last:,} {one.unit}s, but {read:,} were read: it was cut or replaced; restore it, or give "
        "the new file another name"
    )


def called(path: str) -> str:
    """Return the readable name of a path: the path itself, or a file:// URI in %XX if it has unprintable characters.

    Two paths never share a name, because a path begins with /.
    """
    return path if printable(path) == path and not {"\n", "\t"} & set(path) else f"file://{quote(os.fsencode(path))}"


def matches(pattern: str) -> Iterator[str]:
    """Yield the existing paths that a pattern matches, in order."""
    for path in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - patterns are texts from the root
        yield path.rstrip("/")
