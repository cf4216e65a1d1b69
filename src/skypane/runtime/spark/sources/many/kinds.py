"""What planning and reading need of an input, whatever kind it is of.

A kind is a module with what `Kind` says, and a line in registry.py. Its key is what a mapping in the list has: {"path": ...}. A place in an input is a whole number that only its kind knows the meaning of (a byte of a file, the offset of
a message); it grows with what was read, begins with 0, and is all that Spark's log keeps.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.naming import instead
from skypane.runtime.spark.sources.many.parsing import Malformed
from skypane.types import ConfigError, Length


class Listed(Protocol):
    """What one entry of the list says: an input, or a pattern that finds many. A frozen value."""

    @property
    def kind(self) -> str:
        """The key that chose its kind."""

    @property
    def is_pattern(self) -> bool: ...

    @property
    def format(self) -> str | None:
        """How its rows are written, of those that are parsed: csv or json; None: they are not."""

    @property
    def claims(self) -> frozenset[str]:
        """Names and things of which no other entry may have one."""

    def plain(self) -> dict[str, Any]:
        """Return the mapping that means this entry, as JSON can hold it; it stands in plans: ConfigError for secrets."""


class Input(Protocol):
    """One input; a frozen value that planning keeps and tasks get."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str:
        """What its rows are called by."""

    @property
    def identity(self) -> Hashable:
        """What it is, whatever it is called: what two entries find is one input."""

    @property
    def meta(self) -> MetaData: ...

    @property
    def log(self) -> str | None:
        """The folder of the log that it is, which a receiver writes; None if it is none."""

    @property
    def unit(self) -> str:
        """What a place counts, in the singular: byte, offset."""

    def per_row(self, start: int) -> float:
        """Return how many places a row takes after `start`, as far as a look tells: above zero."""

    def complete(self, start: int, last: int) -> int:
        """Return where the last complete row of [start, last) ends, at least `start`."""

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        """Return where the next complete rows of [start, last) end, at most `rows`, and how many they are."""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of an input now: places [first, last), of which the last ones may not be complete.

    lost   a sentence, if what was to be read next is not there any more, and reading can but begin at `first`
    """

    input: Input
    first: int
    last: int
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Places [start, end) of an input: whole rows."""

    input: Input
    start: int
    end: int


class Kind(Protocol):
    """What a module of a kind has."""

    @property
    def KEY(self) -> str:
        """What the mapping of such an input has."""

    def of(self, given: Mapping[str, Any], where: str) -> Listed:
        """Return what a mapping of the list means; ConfigError, naming `where`, if it means nothing."""

    def look(self, listed: Sequence[Any], at: Mapping[str, int]) -> Iterable[Found]:
        """Yield the inputs that entries of this kind find, which are there now; `at` is how far inputs were read."""

    def read(self, parts: Sequence[Range], columns: pa.Schema) -> Iterator[tuple[Range, pa.Table | Malformed]]:
        """Yield the rows of ranges of inputs of this kind, in order within a range; CheckpointError for what is gone."""


def values_of(entry: type, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of an entry's class that a mapping gives; ConfigError for what it does not know."""
    known = [item.name for item in fields(entry) if item.init]
    for name in given:
        if name not in known:
            raise ConfigError(f"{where}: an input has no {name!r}; {instead(str(name), known)}")
    values = dict(given)
    if not isinstance(values.get("meta"), MetaData | None):
        values["meta"] = MetaData.of(values["meta"], f"{where}.meta")
    return values


def plain_meta(meta: MetaData) -> dict[str, Any]:
    """Return what is given of meta-data; lengths of time in the one unit that loses nothing."""
    said = {item.name: getattr(meta, item.name) for item in fields(MetaData)}
    return {name: f"{value:d} us" if isinstance(value, Length) else value for name, value in said.items()
            if value is not None}  # fmt: skip
