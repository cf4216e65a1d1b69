"""A record of the objects that were read: short, whatever their number, and enough to know which objects are new.

Objects are read in the order in which they were last written. Those written within ten minutes before the newest one
that was read, or there, when the whole folder was listed last (`recent`, 1,000 at most, and those after them) are known
by their names and versions. An object that was written earlier (`settled`) is known by its time alone, as one that was
read. Spans of time have the number and the sum of the names of
their settled objects. When the whole folder is listed, these are compared with what is there:

    equal          all that was read is there, unchanged; each other object is new
    one name more  an object that became visible long after its time (an upload in parts has the time of its beginning).
                   The difference of the sums is its name, so it is found, and is new. Several are, if they are the last ones
                   of their span, as the rest of objects of which a batch has read the first ones
    fewer names    objects were removed; or, if the difference is the name of an object that seems to be new, of two, or of
                   all with names before those that were read, these were written again
    otherwise      names are missing and new in one span at the same time, or several became visible too late: their
                   number is reported
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from skypane.runtime.objects.folder_listing import StoredObject, key_of

SETTLING: Final = 600_000_000
"""Microseconds after which an object is no longer known by its name."""
MOST_RECENT: Final = 1_000
"""Objects that are known by their names, at most, except those of one time, and those after a listing of the whole folder."""
_SPAN: Final = 3_600_000_000
"""Microseconds of the newest spans, at least."""
_MOST_SPANS: Final = 32

_RECENT: Final = np.dtype([("key", "<u8"), ("modified", "<i8"), ("version", "<u4")])
_SPANS: Final = np.dtype([("begin", "<i8"), ("objects", "<i8"), ("total", "<u8")])
_MOD: Final = 1 << 64


class Span(NamedTuple):
    """Settled objects that were written from a time on, up to the begin of the next span.

    objects, total   their number, and the sum of their keys modulo 2**64
    """

    begin: int
    objects: int = 0
    total: int = 0

    def plus(self, key: int) -> Span:
        return Span(self.begin, self.objects + 1, (self.total + key) % _MOD)


class KnownVersion(NamedTuple):
    """A recent object, beside the key of its name."""

    modified: int
    version: int


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """The objects in a listing of the whole folder, beside those that were read.

    new        objects that were not read, in the order in which they are read
    rewritten  objects that were read, and have other contents now
    hidden     a sentence for each span in which objects may not have been read, and cannot be distinguished from others
    read       what was read, without what was removed since
    """

    new: tuple[StoredObject, ...]
    rewritten: tuple[StoredObject, ...]
    hidden: tuple[str, ...]
    read: ReadObjects


@dataclass(frozen=True, slots=True)
class ReadObjects:
    """The objects that were read, as a value.

    settled  objects that were written before this time, in microseconds since the epoch, count as read
    recent   key of a name -> what is known of the object; objects that were written later, or at that time
    spans    ascending; the first one begins at 0
    limit    no later time settles before the whole folder is listed again: names before those that a listing begins with
             may have been written since; 0 before the first listing of this process
    """

    settled: int = 0
    recent: Mapping[int, KnownVersion] = field(default_factory=dict)
    spans: tuple[Span, ...] = (Span(0),)
    limit: int = 0

    def compared(self, listing: Callable[[], Iterable[StoredObject]]) -> FolderChanges:
        """Return the changes in a listing of the whole folder.

        listing  lists the folder; it is called again only to find objects that became visible late
        """
        there = [Span(one.begin) for one in self.spans]
        new, rewritten, recent, last = set[StoredObject](), set[StoredObject](), dict(self.recent), ""
        for one in listing():
            known = recent.get(one.key)
            if known is None and not self.is_settled(one):
                new.add(one)
                continue
            last = max(last, one.name)
            if known is None:
                at = self._span_of(one.modified)
                there[at] = there[at].plus(one.key)
            elif known.version == one.version:
                recent[one.key] = KnownVersion(one.modified, one.version)  # the same contents may be written again
            else:
                rewritten.add(one)
        found = [_Difference.of(span, now) for span, now in zip(self.spans, there, strict=True)]
        again = _written_again(found, new, last)
        late = self._late(listing, found)
        hidden = tuple(_hidden(self.spans[at], one) for at, one in enumerate(found) if one.is_unclear(late.get(at)))
        spans = tuple(self.spans[at] if late.get(at) else now for at, now in enumerate(there))
        limit = _settled_by([*(one.modified for one in new), *(one.modified for one in recent.values())])
        new = new.union(*late.values()) - again
        return FolderChanges(
            in_order(new), in_order(rewritten | again), hidden, replace(self, recent=recent, spans=spans, limit=limit)
        )

    def _late(
        self, listing: Callable[[], Iterable[StoredObject]], found: Sequence[_Difference]
    ) -> dict[int, list[StoredObject]]:
        """Return the objects of each span with more objects than were read that were not read, if the sums show which."""
        there: dict[int, list[StoredObject]] = {at: [] for at, one in enumerate(found) if one.missing < 0}
        for one in listing() if there else ():
            at = self._span_of(one.modified)
            if at in there and self.is_settled(one) and not self.is_recent(one.name):
                there[at].append(one)
        return {at: found[at].more(some) for at, some in there.items()}

    @property
    def held(self) -> int:
        """The number of objects that settle only after the whole folder is listed again."""
        return sum(one.modified >= self.limit for one in self.recent.values())

    def is_settled(self, one: StoredObject) -> bool:
        """Return whether an object was written before the time up to which all that was seen is read."""
        return one.modified < self.settled

    def is_recent(self, name: str) -> bool:
        """Return whether an object of this name was read lately."""
        return key_of(name) in self.recent

    def with_read(self, objects: Iterable[StoredObject], waiting_since: int | None) -> ReadObjects:
        """Return what was read after these objects, too.

        waiting_since   the earliest time of an object that is known and was not read; None if there is none
        """
        recent, spans = dict(self.recent), list(self.spans)
        for one in objects:
            if self.is_settled(one) and one.key not in recent:
                at = self._span_of(one.modified)
                spans[at] = spans[at].plus(one.key)
            else:
                recent[one.key] = KnownVersion(one.modified, one.version)
        settled = min(_settled_by([known.modified for known in recent.values()]), self.limit)
        settled = max(self.settled, settled if waiting_since is None else min(settled, waiting_since))
        for key, known in sorted(recent.items(), key=lambda item: (item[1].modified, item[0])):
            if known.modified >= settled:
                break
            if known.modified - spans[-1].begin >= _SPAN:
                spans.append(Span(known.modified))
            spans[-1] = spans[-1].plus(key)
            del recent[key]
        return ReadObjects(settled, recent, _fewer(spans, settled), self.limit)

    def _span_of(self, modified: int) -> int:
        return bisect_right(self.spans, modified, key=attrgetter("begin")) - 1

    def to_json(self) -> list[Any]:
        """Return a list of a number and two texts, which of() takes."""
        recent = np.array([(key, *known) for key, known in self.recent.items()], _RECENT)
        return [self.settled, _text(recent), _text(np.array([tuple(one) for one in self.spans], _SPANS))]

    @classmethod
    def of(cls, given: Sequence[Any]) -> ReadObjects:
        settled, recent, spans = given
        rows = np.frombuffer(b64decode(recent), _RECENT).tolist()
        known = {key: KnownVersion(modified, version) for key, modified, version in rows}
        return cls(settled, known, tuple(Span(*row) for row in np.frombuffer(b64decode(spans), _SPANS).tolist()))


def in_order(objects: Iterable[StoredObject]) -> tuple[StoredObject, ...]:
    """Return objects in the order in which they are read: of one time, by name."""
    return tuple(sorted(objects, key=attrgetter("modified", "name")))


class _Difference(NamedTuple):
    """How many names of a span are missing in a listing, below zero if there are more, and the difference of the sums."""

    missing: int
    total: int

    @classmethod
    def of(cls, span: Span, now: Span) -> _Difference:
        return cls(span.objects - now.objects, (span.total - now.total) % _MOD)

    def written_again(self, new: Mapping[int, StoredObject]) -> set[StoredObject]:
        """Return the one or two objects, by their keys, that seem to be new, and are those that are missing."""
        if self.missing == 1:
            return {new[self.total]} if self.total in new else set()
        if self.missing == 2:
            for key, one in new.items():
                other = (self.total - key) % _MOD
                if other in new and other != key:
                    return {one, new[other]}
        return set()

    def more(self, there: Sequence[StoredObject]) -> list[StoredObject]:
        """Return the objects of a span that are there and were not read, if the sums show which: one, or the last ones."""
        total = -self.total % _MOD
        if self.missing == -1:
            return [one for one in there if one.key == total]
        last = in_order(there)[self.missing :]
        return list(last) if _is_sum(-self.missing, total, last) else []

    def is_unclear(self, more: Sequence[StoredObject] | None) -> bool:
        return (self.missing < 0 and not more) or (self.missing == 0 and self.total != 0)


def _written_again(found: Sequence[_Difference], new: Collection[StoredObject], last: str) -> set[StoredObject]:
    """Return the objects that seem to be new and were read; `last` is the last name of those that were."""
    gone = [one for one in found if one.missing > 0]
    count, total = sum(one.missing for one in gone), sum(one.total for one in gone) % _MOD
    for some in ([one for one in new if one.name <= last], new) if gone else ():
        if _is_sum(count, total, some):
            return set(some)
    keys = {one.key: one for one in new} if gone else {}
    return set[StoredObject]().union(*(one.written_again(keys) for one in gone))


def _is_sum(count: int, total: int, objects: Collection[StoredObject]) -> bool:
    return len(objects) == count and sum(one.key for one in objects) % _MOD == total


def _hidden(span: Span, found: _Difference) -> str:
    since = np.datetime64(span.begin, "us").astype("datetime64[s]")
    many = (
        f"{-found.missing:,} objects more than were read"
        if found.missing
        else "other objects than those that were read"
    )
    return (
        f"has {many} among those written from {since} UTC on: they became visible long after the time that the store "
        "shows, and cannot be distinguished from those that were read; write them again under other names, and remove these"
    )


def _settled_by(times: Sequence[int]) -> int:
    """Return the time before which objects of these times settle, as time passes and as their number grows."""
    newest = nlargest(MOST_RECENT, times)
    return max(newest[0] - SETTLING, newest[-1] if len(times) > MOST_RECENT else 0) if newest else 0


def _fewer(spans: list[Span], now: int) -> tuple[Span, ...]:
    """Join neighbours, those that are short for their age first, until there are few spans."""
    while len(spans) > _MOST_SPANS:
        ends = [*(one.begin for one in spans[2:]), max(now, spans[-1].begin)]
        at = min(range(len(ends)), key=lambda at: (ends[at] - spans[at].begin) / (now - spans[at].begin + _SPAN))
        one, other = spans[at : at + 2]
        spans[at : at + 2] = [Span(one.begin, one.objects + other.objects, (one.total + other.total) % _MOD)]
    return tuple(spans)


def _text(rows: np.ndarray[Any, Any]) -> str:
    return b64encode(rows.tobytes()).decode()
