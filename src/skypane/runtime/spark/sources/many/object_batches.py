"""Which rows of a folder's objects a batch has, as Spark's log keeps it, and how tasks read them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.naming import printable
from skypane.operators.entry.raw_text import OFFSET
from skypane.runtime.objects.folder_listing import StoredObject
from skypane.runtime.objects.object_bytes import AHEAD, ObjectBytes, ObjectLostError
from skypane.runtime.objects.object_text import ObjectText, object_text
from skypane.runtime.objects.read_objects import ReadObjects
from skypane.runtime.row_parser import FILE, Malformed
from skypane.runtime.spark.sources.many.input_kind import OffsetRange, RowOffsets
from skypane.runtime.spark.sources.many.line_numbers import LineNumbers
from skypane.runtime.spark.sources.many.object_entry import ObjectsInput
from skypane.runtime.spark.sources.many.text_rows import rows_of_text
from skypane.types import CheckpointError

RATIO: Final = 8
"""Bytes of text that are expected of a byte of a compressed object."""
_LEAST: Final = 1 << 20
"""Bytes of text that are worth a task."""
_AT_ONCE: Final = 8
"""Objects that are requested at the same time, at most."""
_MARK: Final = 5
"""Items of the list of a mark; that of an input of another kind, which had the name before, has fewer."""
_NOTE: Final = 2
"""Items of the list of a slice that only says why an object is not read."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of one version of an object: those of its text in [begin, end).

    name   the object's name in its folder
    end    None: all from `begin` on
    why    if it is not empty, the reason why rows of the object are not read, instead of rows
    """

    name: str
    size: int = 0
    stamp: str = ""
    begin: int = 0
    end: int | None = None
    why: str = ""

    def to_json(self) -> list[Any]:
        if self.why:
            return [self.name, self.why]
        values = [self.name, self.size, self.stamp, self.begin, self.end]
        while not values[-1]:
            values.pop()
        return values

    @classmethod
    def whole(cls, one: StoredObject) -> Slice:
        """Return all rows of an object, or the reason why it is not read."""
        return cls(one.name, why=one.unread) if one.unread else cls(one.name, one.size, one.stamp)

    @classmethod
    def of(cls, given: Sequence[Any]) -> Slice:
        return cls(given[0], why=given[1]) if len(given) == _NOTE else cls(*given)

    def rest(self) -> Slice | None:
        """Return the rows after these; None if there are none."""
        return None if self.why or self.end is None else Slice(self.name, self.size, self.stamp, self.end)


@dataclass(frozen=True, slots=True)
class FolderMark:
    """The objects of the batch that ends here, and those that were read, as Spark's log keeps them beside the offset.

    before   the digest of the mark at which the batch begins
    """

    before: str = ""
    slices: tuple[Slice, ...] = ()
    read: ReadObjects = ReadObjects()  # noqa: RUF009 - a frozen value

    @classmethod
    def of(cls, mark: Sequence[Any]) -> FolderMark:
        if len(mark) != _MARK:
            return cls()
        before, slices, *read = mark
        return cls(before, tuple(map(Slice.of, slices)), ReadObjects.of(read))

    def to_json(self) -> list[Any]:
        return [self.before, [one.to_json() for one in self.slices], *self.read.to_json()]

    @property
    def rest(self) -> Slice | None:
        """The rest of the object in which the batch ends; None if it ends with an object."""
        return self.slices[-1].rest() if self.slices else None


def digest(mark: Sequence[Any]) -> str:
    """Return a short text that stands for a mark, as Spark's log keeps it."""
    return blake2b(json.dumps(list(mark)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class ObjectSlices(RowOffsets):
    """Slices of a folder, as tasks receive them.

    skip   whether rows that are no longer there are reported as malformed; else they are an error
    ahead  bytes that a request reads, at least
    """

    entry: ObjectsInput
    slices: tuple[Slice, ...]
    skip: bool = False
    ahead: int = AHEAD

    @property
    def kind(self) -> str:
        return self.entry.kind

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def identity(self) -> str:
        return self.entry.identity

    @property
    def meta(self) -> MetaData:
        return self.entry.meta

    @property
    def log(self) -> None:
        return None

    @property
    def unit(self) -> str:
        return self.entry.unit

    def rows(self, start: int, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
        """Yield the rows; offsets of malformed ones count from `start`."""
        for one, text in texts_of(self.entry, self.slices, "rows", self.ahead):
            where = f"{self.entry.objects}{one.name}"
            if text is None:
                yield Malformed(start, None, f"{where} {one.why}", file=where)
            else:
                yield from self._rows(one, text, where, start, columns)
            start += weight(self.entry, one)

    def divided(self, start: int, end: int, parts: int) -> list[OffsetRange]:
        """Return the slices in at most so many ranges, none with fewer bytes than are worth a task."""
        ends = list(accumulate((weight(self.entry, one) for one in self.slices), initial=0))
        parts = max(min(parts, ends[-1] // _LEAST), 1)
        numbers = [begin * parts // ends[-1] for begin in ends[:-1]]
        if len({*numbers}) < 2:
            return [OffsetRange(self, start, end)]
        cuts = [at for at, number in enumerate(numbers) if at == 0 or number != numbers[at - 1]]
        return [
            OffsetRange(replace(self, slices=self.slices[first:after]), start + ends[first], start + ends[after])
            for first, after in pairwise([*cuts, len(self.slices)])
        ]

    def _rows(
        self, one: Slice, text: Future[ObjectText], where: str, start: int, columns: pa.Schema
    ) -> Iterator[pa.Table | Malformed]:
        form, names_columns = self.entry.format or "", self.entry.header
        try:
            for found in rows_of_text(
                text.result(),
                LineNumbers(f"{where} {one.stamp}"),
                form,
                columns,
                one.begin,
                one.end,
                names_columns=names_columns,
            ):
                yield _placed(found, where, start - one.begin)
        except ObjectLostError as error:
            if not self.skip:
                raise CheckpointError(
                    f"input {self.name}: {printable(where)} {error}, but a started batch needs the version {one.stamp}; restore "
                    'it, or set on_loss="skip" to leave its rows out'
                ) from error
            yield Malformed(start, None, f"{where} {error} before all its rows were read", file=where)


def texts_of(
    entry: ObjectsInput, slices: Sequence[Slice], role: str, ahead: int = AHEAD
) -> Generator[tuple[Slice, Future[ObjectText] | None]]:
    """Yield each slice with the text of its object, None if its rows are not read.

    The first bytes of the next objects are requested while one is read, as far as they are few: an answer takes a store
    longer than most objects take to be read.
    """
    pool, begun = ThreadPoolExecutor(_AT_ONCE), deque[tuple[Slice, Future[ObjectText] | None]]()
    try:
        for one in slices:
            while begun and (len(begun) == _AT_ONCE or sum(other.size for other, _ in begun) + one.size > AHEAD):
                yield begun.popleft()
            begun.append((one, None if one.why else pool.submit(_begun, entry, one, role, ahead)))
        while begun:
            yield begun.popleft()
    finally:
        pool.shutdown(cancel_futures=True)


def _begun(entry: ObjectsInput, one: Slice, role: str, ahead: int) -> ObjectText:
    text = text_of(entry, one, ahead)
    text.fetch(one.begin, role)
    return text


def losses(entry: ObjectsInput, slices: Sequence[Slice]) -> list[ObjectLostError | None]:
    """Return for each slice why its version of the object is not there, None if it is; a request for each."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda one: _loss(entry, one), slices))


def _loss(entry: ObjectsInput, one: Slice) -> ObjectLostError | None:
    try:
        ObjectBytes(entry.folder.child(one.name), one.size, one.stamp).check()
    except ObjectLostError as error:
        return error
    return None


def text_of(entry: ObjectsInput, one: Slice, ahead: int = AHEAD) -> ObjectText:
    """Return the text of the object of a slice."""
    return object_text(entry.folder.child(one.name), one.size, one.stamp, entry.packed(one.name), ahead=ahead)


def weight(entry: ObjectsInput, one: Slice) -> int:
    """Return how far a slice moves the offset: the bytes of its text, or an estimate of them, above zero."""
    if one.why:
        return 1
    length = one.size * (RATIO if entry.packed(one.name) else 1)
    return max((length if one.end is None else one.end) - one.begin, 1)


def _placed(found: pa.Table | Malformed, where: str, base: int) -> pa.Table | Malformed:
    """Return what was read with its object."""
    if not isinstance(found, Malformed):
        return (
            found.replace_schema_metadata({**(found.schema.metadata or {}), FILE: where})
            if OFFSET in found.column_names
            else found
        )
    within = found.offset
    error = f"{found.error} (byte {within:,} of {where})"
    return found._replace(offset=base + within, error=error, file=where, within=within)
