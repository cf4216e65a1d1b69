"""The objects of a folder that wait, as the driver knows them between batches. If this is lost, all is listed again.

The whole folder is listed at a start, and from time to time. In between, a listing begins after the last name of the
objects that are settled, so that it has the newest objects only if names ascend. An object with an earlier name is
found when the whole folder is listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from skypane.runtime.objects.folder_listing import StoredObject, objects_of
from skypane.runtime.objects.read_objects import FolderChanges, ReadObjects, in_order
from skypane.runtime.spark.sources.many.object_batches import FolderMark, Slice, digest, weight
from skypane.runtime.spark.sources.many.object_entry import ObjectsInput

MOST_OBJECTS: Final = 500
"""Objects of a batch, at most, since Spark's log names them."""
_MOST_WAITING: Final = 20_000
"""Objects that are known to wait, at most; the others are found when these are read."""
_MOST_HELD: Final = 5_000
"""Objects from which on the whole folder is listed again so that they settle: each offset has some bytes for each."""
_SHARE: Final = 10
"""The whole folder is listed once in so many times what that takes, at most."""
PAUSE: Final = 1.0
"""Seconds between two listings while nothing waits: Spark looks for rows a hundred times a second, and a store bills each request."""
_KEPT: Final = 3
"""Catalogs of a folder that a process keeps, at most: of the batch that runs, and of the next one."""


class Pending(NamedTuple):
    """The next rows of an object, or the reason why they are not read.

    object   the object, if it counts as read with this; None for the rest of one that does so already
    """

    slice: Slice
    object: StoredObject | None


class UnlistedObjects(NamedTuple):
    """Objects that wait after those that are kept: bytes of their text, the time of the first, and the last one."""

    weight: int
    since: int
    newest: tuple[int, str]


@dataclass
class FolderCatalog:
    """The objects of a folder that were not read, by a listing of the whole folder and those after it.

    read     what was read, without what was removed since
    waiting  name -> an object that was not read
    notes    reasons why objects are not read
    removed  names of objects that waited, and are gone
    rest     the rest of the object in which the last batch ends
    after    the last name of the objects that are settled; empty if there are none
    known    name -> version of objects that were read lately
    begun, seconds   when the listing of the whole folder began, and how long it took
    looked   when the last listing ended, in seconds
    due      whether the whole folder is to be listed as soon as that may take time
    listed   names in the listing for the next batch, as far as they wait: others may have changed since they were listed
    """

    read: ReadObjects
    waiting: dict[str, StoredObject]
    notes: list[Pending]
    removed: list[str]
    rest: Slice | None
    after: str
    known: dict[str, str]
    begun: float
    seconds: float
    looked: float = -math.inf
    beyond: UnlistedObjects | None = None
    due: bool = False
    listed: set[str] = field(default_factory=set)

    def is_due(self, now: float, every: float) -> bool:
        """Return whether the whole folder is to be listed again."""
        few, passed = len(self.waiting) <= MOST_OBJECTS, now - self.begun
        if few and (not self.after or self.beyond is not None):
            return True  # no other listing shows what is next
        again = passed >= every or self.read.held > _MOST_HELD
        return passed >= self.seconds * _SHARE and (self.due or (few and again))

    def is_idle(self, now: float) -> bool:
        """Return whether all was read, and a listing has shown no more a moment ago."""
        return now - self.looked < PAUSE and not self.queue()

    def took(self, seconds: float) -> None:
        """Note how long the listing of the whole folder took: it may lack what was written meanwhile."""
        self.seconds = seconds
        self.read = replace(self.read, limit=self.read.limit - int(seconds * 1e6))

    def extend(self, entry: ObjectsInput) -> None:
        """Add what a listing of the last names shows, if a batch could have more objects than wait."""
        self.listed = set()
        if len(self.waiting) > MOST_OBJECTS:
            return
        for one in objects_of(entry.folder, entry.match, self.after):
            if one.name in self.known:
                self.due |= self.known[one.name] != one.stamp  # the whole folder shows what else was written again
            elif self.read.is_recent(one.name):
                self.due = True  # it was removed for a while
            elif one.name in self.waiting or not self.read.is_settled(one):
                self.waiting[one.name] = one
                self.listed.add(one.name)

    def queue(self) -> list[Pending]:
        """Return what is to be read, in order."""
        first = [] if self.rest is None else [Pending(self.rest, None)]
        gone = [Pending(lost(Slice(name), "was removed"), None) for name in self.removed if name not in self.waiting]
        objects = [Pending(Slice.whole(one), one) for one in in_order(self.waiting.values())]
        return [*first, *self.notes, *gone, *objects]

    @property
    def waiting_since(self) -> int | None:
        """The earliest time of an object that waits."""
        times = [one.modified for one in self.waiting.values()]
        return min(times + ([] if self.beyond is None else [self.beyond.since]), default=None)

    def after_reading(self, taken: Sequence[Pending], before: str) -> tuple[FolderCatalog, FolderMark]:
        """Return the catalog after a batch, and its mark; `before` is the digest of the mark at which it begins."""
        names = {one.slice.name for one in taken}
        objects = [one.object for one in taken if one.object is not None]
        left = {name: one for name, one in self.waiting.items() if name not in names}
        notes = [one for one in self.notes if one not in taken]
        removed = [name for name in self.removed if name not in names]
        next_one = replace(self, waiting=left, notes=notes, removed=removed)
        late = any(self.read.is_settled(one) for one in objects)
        read = self.read.with_read(objects, next_one.waiting_since)
        mark = FolderMark(before, tuple(one.slice for one in taken), read)
        known = self.known | {one.name: one.stamp for one in objects}
        recent = {name: stamp for name, stamp in known.items() if read.is_recent(name)}
        after = max([self.after, *(known.keys() - recent.keys())])
        # An object that was found by sums alone is found again by those of a new listing only.
        due = self.due or late
        return replace(next_one, read=read, rest=mark.rest, due=due, after=after, known=recent), mark


def whole(entry: ObjectsInput, mark: FolderMark, before: FolderCatalog | None, begun: float) -> FolderCatalog:
    """Return the catalog by a listing of the whole folder; the caller notes how long it took.

    before   the catalog up to now; objects that waited in it and are gone are reported
    """
    after, known = "", dict[str, str]()
    rest_there: str | None = None
    gone = dict.fromkeys([] if before is None else [*before.removed, *before.waiting])

    def passing() -> Iterator[StoredObject]:
        nonlocal after, rest_there
        for one in objects_of(entry.folder, entry.match):
            if mark.read.is_settled(one):
                after = max(after, one.name)
            elif mark.read.is_recent(one.name):
                known[one.name] = one.stamp
            if mark.rest is not None and one.name == mark.rest.name:
                rest_there = one.stamp
            gone.pop(one.name, None)
            yield one

    found = mark.read.compared(passing)
    rest, notes = mark.rest, _notes(found, mark.rest)
    if rest is not None and rest_there != rest.stamp:
        if rest.name not in {one.slice.name for one in notes}:
            what = "was removed" if rest_there is None else "was written again"
            notes.insert(0, Pending(lost(rest, what), None))
        rest = None
    kept, others = found.new[:_MOST_WAITING], found.new[_MOST_WAITING:]
    beyond = _beyond(entry, others) if others else None
    waiting = {one.name: one for one in kept}
    listed = {*waiting} | ({rest.name} if rest else set[str]())
    return FolderCatalog(
        found.read, waiting, notes, [*gone], rest, after, known, begun, seconds=0.0, beyond=beyond, listed=listed
    )


def _notes(found: FolderChanges, rest: Slice | None) -> list[Pending]:
    notes = [Pending(Slice("", why=why), None) for why in found.hidden]
    for one in found.rewritten:
        why = "was written again after it was read: its new contents are not read; write them under another name"
        if rest is not None and one.name == rest.name:
            why = _rest_lost(rest, "was written again")
        notes.append(Pending(Slice(one.name, why=why), one))
    return notes


def _rest_lost(rest: Slice, what: str) -> str:
    return f"{what} when its text was read up to byte {rest.begin:,}: the rest is not read"


def lost(one: Slice, why: str) -> Slice:
    """Return the reason why an object, or the rest of it, is not read."""
    return Slice(one.name, why=_rest_lost(one, why) if one.begin else f"{why} before it was read")


def _beyond(entry: ObjectsInput, others: Sequence[StoredObject]) -> UnlistedObjects:
    total = sum(weight(entry, Slice.whole(one)) for one in others)
    return UnlistedObjects(total, others[0].modified, (others[-1].modified, others[-1].name))


def between(entry: ObjectsInput, start: FolderMark, end: FolderMark) -> tuple[Slice, ...]:
    """Return what lies between two marks of which the second is not that of the batch after the first, by a listing.

    Spark has batches one after the other. This is for a record of them that has a gap.
    """
    listed = list(objects_of(entry.folder, entry.match))
    at_start, at_end = start.read.compared(lambda: listed), end.read.compared(lambda: listed)
    again = {*at_start.rewritten} - {*at_end.rewritten}
    objects = [one for one in at_start.new if one not in {*at_end.new}]
    slices = [Slice.whole(one) for one in objects]
    found = [] if start.rest is None else [start.rest]
    found += [one.slice for one in _notes(at_start, None) if one.object in again] + slices
    if (rest := end.rest) is not None:
        found = [replace(one, end=rest.begin) if one.name == rest.name else one for one in found]
    return tuple(one for one in found if one.end is None or one.end > one.begin)


_catalogs: dict[str, dict[str, FolderCatalog]] = {}
"""The catalogs of this process, by folder and by the mark after which they apply."""


def remembered(entry: ObjectsInput, mark: Sequence[Any]) -> FolderCatalog | None:
    """Return the catalog of this process that applies after a mark, if there is one."""
    return _catalogs.get(entry.identity, {}).get(digest(mark))


def remember(entry: ObjectsInput, mark: Sequence[Any], one: FolderCatalog) -> None:
    """Keep a catalog for the batch after a mark."""
    catalogs = _catalogs.setdefault(entry.identity, {})
    catalogs.pop(key := digest(mark), None)
    catalogs[key] = one
    while len(catalogs) > _KEPT:
        del catalogs[next(iter(catalogs))]
