"""Folders of object stores, as inputs: `{"objects": "s3://bucket/folder/"}`. Their offsets count bytes of text, about.

Objects arrive over time, and are complete when they appear. The rows of a batch follow from its marks
(object_batches.py), new objects from listings (folder_catalog.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from itertools import accumulate
from time import monotonic as clock
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.runtime.growing_files import LOOK
from skypane.runtime.line_rows import header
from skypane.runtime.objects.object_bytes import GLANCE, ObjectLostError
from skypane.runtime.objects.object_text import ObjectText
from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many import folder_catalog, object_entry
from skypane.runtime.spark.sources.many.folder_catalog import MOST_OBJECTS, FolderCatalog, Pending
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, described
from skypane.runtime.spark.sources.many.object_batches import (
    FolderMark,
    ObjectSlices,
    Slice,
    digest,
    losses,
    text_of,
    texts_of,
    weight,
)
from skypane.runtime.spark.sources.many.object_entry import ObjectsInput
from skypane.types import CheckpointError, micros

KEY: Final = object_entry.KEY
"""The key of a mapping that chooses this kind."""


class FolderInput:
    """A folder, as the planner knows it for one batch.

    at        the offset up to which it was read
    catalog   the objects that wait
    """

    log: ClassVar[None] = None
    unit: ClassVar[str] = "byte"

    def __init__(self, entry: ObjectsInput, at: int, catalog: FolderCatalog, mark: Sequence[Any]) -> None:
        self.entry, self.at, self.catalog = entry, at, catalog
        self.kind, self.name, self.identity, self.meta = entry.kind, entry.name, entry.identity, entry.meta
        self._mark = mark
        self._queue = catalog.queue()
        #: where the slices of the queue begin, and where the last one ends
        self._starts = list(accumulate((weight(entry, one.slice) for one in self._queue), initial=at))
        #: end of a batch -> what it takes
        self._planned: dict[int, list[Pending]] = {}
        #: beginning of a sample -> its rows
        self._sampled: dict[int, ObjectSlices] = {}

    @property
    def last(self) -> int:
        return self._starts[-1] + (self.catalog.beyond.weight if self.catalog.beyond else 0)

    @property
    def unclear(self) -> str:
        found = [one.slice.why for one in self.catalog.notes if not one.slice.name]
        return f"the folder {'; it '.join(found)}" if found else ""

    def newest(self) -> tuple[int, str] | None:
        """Return the time and the name of the last object that waits; None if none does."""
        if self.catalog.beyond is not None:
            return self.catalog.beyond.newest
        return max(((one.modified, one.name) for one in self.catalog.waiting.values()), default=None)

    def last_up_to(self, newest: tuple[int, str] | None) -> int:
        """Return the end of all that is to be read up to this object."""
        beyond = self.catalog.beyond
        if newest is not None and beyond is not None and (beyond.since, "") <= newest:
            return self.last
        return self.at + sum(
            weight(self.entry, one.slice)
            for one in self._queue
            if one.object is None
            or one.slice.name not in self.catalog.waiting
            or (newest and (one.object.modified, one.object.name) <= newest)
        )

    def names(self) -> tuple[str, ...] | None:
        """Return the columns that the first line of the first object that waits names; None if it names none."""
        if not self.entry.header:
            return None
        for one in self._queue[:1]:
            with suppress(ObjectLostError, OSError):
                return () if one.slice.why else header(text_of(self.entry, one.slice, GLANCE).first_line().text)
        return ()

    def per_row(self, start: int) -> float:
        for begin, one in zip(self._starts, self._queue, strict=False):
            if begin >= start and not one.slice.why:
                with suppress(ObjectLostError, OSError):
                    # An object without a line end is one row.
                    length = text_of(self.entry, one.slice, GLANCE).line_length(one.slice.begin)
                    return length or float(weight(self.entry, one.slice))
                break
        return float(LOOK)

    def complete(self, start: int, last: int) -> int:
        wanted = [one for one, begin in zip(self._queue[:MOST_OBJECTS], self._starts, strict=False) if begin < last]
        unsure = [one for one in wanted if not one.slice.why and one.slice.name not in self.catalog.listed]
        lost = dict(zip(unsure, losses(self.entry, [one.slice for one in unsure]), strict=True))
        found = (self._lost(one, error) if (error := lost.get(one)) else one for one in wanted)
        taken = [one for one in found if one is not None]
        end = start + sum(weight(self.entry, one.slice) for one in taken)
        self._planned[end] = taken
        return end

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        end, counted, taken = start, 0, list[Pending]()
        queue = self._queue[:MOST_OBJECTS] if rows > 0 else []
        with closing(texts_of(self.entry, [one.slice for one in queue], "plan")) as texts:
            for one, (_, text) in zip(queue, texts, strict=True):
                if end >= last or counted >= rows:
                    break
                if (found := self._rows(one, text, rows - counted)) is not None:
                    part, count = found
                    taken.append(part)
                    end, counted = end + weight(self.entry, part.slice), counted + count
        self._planned[end] = taken
        return end, counted

    def _rows(self, one: Pending, text: Future[ObjectText] | None, rows: int) -> tuple[Pending, int] | None:
        """Return the next rows of a slice, at most `rows`, and their number; None if another version is to be read."""
        part = one.slice
        if text is None:
            return one, 1
        try:
            end, count = text.result().rows_after(part.begin, rows)
        except ObjectLostError as error:
            return None if (gone := self._lost(one, error)) is None else (gone, 1)
        return Pending(Slice(part.name, part.size, part.stamp, part.begin, end), one.object), count

    def _lost(self, one: Pending, error: ObjectLostError) -> Pending | None:
        """Return the reason why rows are not read; None if another version is to be read, once the folder is listed."""
        self.catalog.due = True
        if one.object is not None and "again" in str(error):
            return None
        return Pending(folder_catalog.lost(one.slice, str(error)), None)

    def sample(self, near: int, rows: int, _last: int) -> tuple[int, int]:
        at = bisect_right(self._starts, near) - 1
        texts = [place for place in range(max(at, 0), len(self._queue)) if not self._queue[place].slice.why]
        if not texts:
            return near, near
        part, begin = self._queue[texts[0]].slice, self._starts[texts[0]]
        with suppress(ObjectLostError, OSError):
            start, end = text_of(self.entry, part, GLANCE).sample(part.begin + max(near - begin, 0), rows)
            if end > start:
                found = Slice(part.name, part.size, part.stamp, start, end)
                self._sampled[near] = ObjectSlices(self.entry, (found,), ahead=GLANCE)
                return near, near + end - start
        return near, near

    def rows(self, start: int, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
        """Yield the rows of a sample."""
        return self._sampled[start].rows(start, columns)

    def mark(self, offset: int) -> Sequence[Any]:
        if offset not in self._planned:
            return self._mark
        left, mark = self.catalog.after_reading(self._planned[offset], digest(self._mark))
        folder_catalog.remember(self.entry, mark.to_json(), left)
        return mark.to_json()

    def planned(self, start: Sequence[Any], end: Sequence[Any], *, skip: bool) -> ObjectSlices:
        """Return what the batch between two marks reads: the objects that the second one names."""
        mark = FolderMark.of(end)
        if not mark.slices:
            raise CheckpointError(
                f"input {self.name}: a started batch has an input of another kind under this name; list it again, until "
                "the batch is done, or name the folder differently"
            )
        if mark.before == digest(start):
            return ObjectSlices(self.entry, mark.slices, skip)
        return ObjectSlices(self.entry, folder_catalog.between(self.entry, FolderMark.of(start), mark), skip)


def of(given: Mapping[str, Any], where: str) -> ObjectsInput:
    """Return the folder that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    return described(ObjectsInput, given, where)


def look(
    listed: Sequence[ObjectsInput], at: Mapping[str, int], marks: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[InputExtent]:
    """Yield the folders, each with the objects that wait; `marks` maps names to the marks of the last batch."""
    for entry in listed:
        mark = (marks or {}).get(entry.name, ())
        one = FolderInput(entry, at.get(entry.name, 0), _catalog(entry, mark), mark)
        yield InputExtent(one, 0, one.last)


def _catalog(entry: ObjectsInput, mark: Sequence[Any]) -> FolderCatalog:
    now = clock()
    known = folder_catalog.remembered(entry, mark)
    if known is not None and known.is_idle(now):
        return known
    if known is not None and not known.is_due(now, micros(entry.rescan) / 1e6):
        known.extend(entry)
    if known is None or known.is_due(now, micros(entry.rescan) / 1e6):
        known = folder_catalog.whole(entry, FolderMark.of(mark), known, now)
        known.took(clock() - now)
        folder_catalog.remember(entry, mark, known)
    known.looked = clock()
    return known


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of slices, in sequence."""
    for part in parts:
        one = part.input
        assert isinstance(one, ObjectSlices | FolderInput)  # noqa: S101 - planned() makes the former; the latter has samples
        for found in one.rows(part.start, columns):
            yield part, found
