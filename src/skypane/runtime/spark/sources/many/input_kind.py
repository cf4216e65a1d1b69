"""The interface of a kind of inputs, for planning and reading.

A kind is a module that has the members of `InputKind`, and a line in registry.py. Mappings in the list choose it by its
key: {"path": ...}. An offset in an input is a whole number whose meaning only the kind knows (a byte of a file, the
offset of a message). It starts at 0, grows with what was read, and is all that Spark's log keeps of an input.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.naming import instead
from skypane.runtime.row_parser import Malformed
from skypane.types import ConfigError, Length, truth

T = TypeVar("T")


class InputSpec(Protocol):
    """One entry of the list: an input, or a pattern that matches many. A frozen value."""

    @property
    def kind(self) -> str:
        """The key that chooses its kind."""

    @property
    def is_pattern(self) -> bool: ...

    @property
    def format(self) -> str | None:
        """Format of the rows; text of csv and json is parsed, which not all types of columns can be. None: there is no choice."""

    @property
    def meta(self) -> MetaData:
        """Meta-data of the rate of each input that it finds."""

    @property
    def claims(self) -> frozenset[str]:
        """Names and identities that no other entry may share."""

    def plain(self) -> dict[str, Any]:
        """Return this entry as a mapping for JSON; raise ConfigError for secrets, because Spark's plans show it."""


class Input(Protocol):
    """One input: a frozen value that the planner keeps and tasks receive."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str:
        """The name in the input column of its rows."""

    @property
    def identity(self) -> Hashable:
        """Identity regardless of the name: an input that two entries find counts once."""

    @property
    def meta(self) -> MetaData: ...

    @property
    def log(self) -> str | None:
        """Folder of the receiver's log that the input reads; None for other inputs."""

    @property
    def unit(self) -> str:
        """The unit of its offsets, in the singular: byte, row, offset."""

    def per_row(self, start: int) -> float:
        """Return an estimate of the units that a row takes after `start`, above zero."""

    def complete(self, start: int, last: int) -> int:
        """Return where the last complete row of [start, last) ends, at least `start`."""

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        """Return where the next complete rows of [start, last) end, at most `rows` of them, and their number."""


@runtime_checkable
class SampledInput(Protocol):
    """An input whose rows can be sampled ahead of a batch, to read it in step with others by event time (optional)."""

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        """Return offsets [start, end) of at most `rows` complete rows, the first ones in [near, last).

        `near` may lie within a row, which is left out then. The range is empty if no row is found quickly.
        """


@runtime_checkable
class MarkedInput(Protocol):
    """An input of which the checkpoint keeps a mark beside its offset (optional)."""

    def mark(self, offset: int) -> Sequence[Any]:
        """Return what to keep beside an offset up to which it was read, values of JSON.

        `look(listed, at, marks)` receives it again.
        """


@runtime_checkable
class SettledInput(Protocol):
    """An input whose end may be an estimate, or within what has rows only when it is complete (optional)."""

    def settled(self, place: int) -> tuple[int, int] | None:
        """Return where its rows end that are complete, at least `place`, and how many bytes follow; None: not known."""


@runtime_checkable
class PlannedInput(Protocol):
    """A marked input whose rows of a batch follow from its marks alone (optional)."""

    def planned(self, start: Sequence[Any], end: Sequence[Any], *, skip: bool) -> Input:
        """Return the input as tasks receive it to read the batch between two marks; `start` is empty at the beginning.

        skip   whether rows that are no longer there are left out, and reported as malformed; else they are an error
        """


@runtime_checkable
class CheckedInput(Protocol):
    """An input that may have rows of which it cannot know whether they were read (optional)."""

    @property
    def unclear(self) -> str:
        """Which ones, and what to do, as a part of a sentence; empty if there are none. A batch reports them as malformed."""


@runtime_checkable
class PlacedInput(Protocol):
    """An input of which late rows name more than its name (optional)."""

    @property
    def origin(self) -> Mapping[str, Any]:
        """Where its rows are: raw_topic and raw_partition, or raw_file, as columns of late rows."""


def origin_of(one: Input) -> Mapping[str, Any]:
    """Return where the rows of an input are, as far as that is known."""
    return one.origin if isinstance(one, PlacedInput) else {}


@runtime_checkable
class DivisibleInput(Protocol):
    """An input, as tasks receive it, whose rows several tasks may read (optional)."""

    def divided(self, start: int, end: int, parts: int) -> Sequence[OffsetRange]:
        """Return [start, end), which is all that the input has, in at most so many ranges of about equal size, in order."""


@runtime_checkable
class OrderedInput(Protocol):
    """An input whose present end is not known as an offset, but as the place of its last row in an order (optional)."""

    def newest(self) -> Any:
        """Return the place of the last row that is there now."""

    def last_up_to(self, newest: Any) -> int:
        """Return the offset at which rows up to a place end, as far as it is known now."""


class RowOffsets:
    """The part of an input whose offsets count rows: each unit is a complete row."""

    __slots__ = ()

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        return near, max(near, min(near + rows, last))

    def per_row(self, _start: int) -> float:
        return 1.0

    def complete(self, start: int, last: int) -> int:
        return max(start, last)

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        end = max(start, min(start + rows, last))
        return end, end - start


@dataclass(frozen=True, slots=True)
class InputExtent:
    """The present extent of an input: offsets [first, last); its last row may be incomplete.

    lost   an explanation if the rows to be read next no longer exist, so that reading can only restart at `first`
    written  when its last row was written, in seconds since the epoch; None: its place does not say
    """

    input: Input
    first: int
    last: int
    lost: str = ""
    written: float | None = None


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of an input: whole rows."""

    input: Input
    start: int
    end: int


class InputKind(Protocol):
    """The members of a module that implements a kind.

    It may also have `peek(parts, columns, time)`, which yields a few rows as read() does, at least their column `time`,
    at a lower cost. Several ranges then come from different inputs. With inputs that have `mark()` (MarkedInput), look()
    has a third argument, which maps names to the marks of the last batch.
    """

    @property
    def KEY(self) -> str:
        """The key of a mapping that chooses this kind."""

    def of(self, given: Mapping[str, Any], where: str) -> InputSpec:
        """Return the entry that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""

    def look(self, listed: Sequence[Any], at: Mapping[str, int]) -> Iterable[InputExtent]:
        """Yield the existing inputs that entries of this kind find; `at` maps names to the offsets read so far."""

    def read(
        self, parts: Sequence[OffsetRange], columns: pa.Schema
    ) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
        """Yield the rows of ranges, in order within a range; raise CheckpointError for rows that no longer exist."""


def described(entry: Callable[..., T], given: Mapping[str, Any], where: str) -> T:
    """Return the entry of this class that a mapping describes; raise ConfigError for unknown keys."""
    known = signature(entry).parameters
    for name in given:
        if name not in known:
            raise ConfigError(f"{where}: an input has no {name!r}; {instead(str(name), list(known))}")
    truths = {name for name, one in known.items() if one.annotation == "bool"}
    values = {name: truth(value, f"{where}: {name}") if name in truths else value for name, value in given.items()}
    if not isinstance(values.get("meta"), MetaData | None):
        values["meta"] = MetaData.of(values["meta"], f"{where}.meta")
    return entry(**values)


def plain_meta(meta: MetaData) -> dict[str, Any]:
    """Return the meta-data that is given, with durations in microseconds, which lose nothing, and changes as texts."""
    values = {item.name: getattr(meta, item.name) for item in fields(MetaData)}
    values["changes"] = meta.schedule.texts or None
    return {name: f"{value:d} us" if isinstance(value, Length) else value for name, value in values.items()
            if value is not None}  # fmt: skip
