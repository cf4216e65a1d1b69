"""The lines of one version of an object: plain, or compressed. It does not grow, so a last line needs no line end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, NamedTuple, Protocol

import numpy as np

from skypane.locations import Location
from skypane.runtime.compressed.compressed_file import LineCutter
from skypane.runtime.compressed.formats import Compression
from skypane.runtime.compressed.unpacking import PIECE, Unpacking
from skypane.runtime.growing_files import LONGEST, LOOK, GrowingFile, LineBlock
from skypane.runtime.objects.object_bytes import AHEAD, ObjectBytes

_AHEAD: Final = 64 << 20
"""Bytes of text that a sample of a compressed object may lie ahead, at most: it has to be unpacked up to there."""
_MEMORY: Final = 256 << 20
"""Bytes that the texts which this process keeps take, about."""


class RowsEnd(NamedTuple):
    """Where rows of an object end.

    place  byte of the text; None: they are the last ones of the object
    rows   their number
    """

    place: int | None
    rows: int


class ObjectText(Protocol):
    """The text of an object."""

    def fetch(self, start: int, role: str, /) -> None:
        """Request the first bytes that are needed to read on from `start`, which are kept.

        role   "plan" for rows_after(), "rows" for blocks()
        """

    def rows_after(self, start: int, rows: int) -> RowsEnd:
        """Return where the next rows from `start` on end, at most `rows`."""

    def first_line(self) -> LineBlock:
        """Return the first line that can be read, or the beginning of one that is too long; else one without text."""

    def line_length(self, start: int) -> float | None:
        """Return the mean length in bytes of lines after `start`, from a sample; None if it has no complete line."""

    def sample(self, near: int, lines: int) -> tuple[int, int]:
        """Return bytes [start, end) of a few lines after `near`, an empty range if none is found quickly."""

    def blocks(self, start: int, end: int | None) -> Iterator[LineBlock]:
        """Yield the lines of [start, end) in blocks, None: of all; of a line that cannot be read, its beginning."""


def object_text(
    place: Location, size: int, stamp: str, form: Compression | None, *, ahead: int = AHEAD
) -> PlainObject | PackedObject:
    """Return the text of a version of an object. Its methods raise ObjectLostError if this version is not there."""
    source = ObjectBytes(place, size, stamp, ahead)
    return PlainObject(str(place), source) if form is None else PackedObject(source, form)


@dataclass(frozen=True, slots=True)
class PlainObject(GrowingFile):
    """An object that is not compressed."""

    source: ObjectBytes

    def opened(self) -> BinaryIO:
        return self.source.opened()

    def size(self) -> int:
        return self.source.size

    def fetch(self, start: int, _role: str) -> None:
        self.source.pread(1, start)

    def line_end(self, start: int) -> int:
        end, found = self.after(start, 1)
        return end if found else self.source.size

    def rows_after(self, start: int, rows: int) -> RowsEnd:
        end, count = self.after(start, rows)
        rest = count < rows and end < self.source.size
        return RowsEnd(None if rest or end >= self.source.size else end, count + rest)

    def sample(self, near: int, lines: int, stop: int | None = None) -> tuple[int, int]:
        return GrowingFile.sample(self, near, lines, self.source.size if stop is None else stop)

    def blocks(self, start: int, end: int | None) -> Iterator[LineBlock]:
        return GrowingFile.blocks(self, start, self.source.size if end is None else end)


@dataclass
class ForwardText:
    """The text of a compressed object from a place on, unpacked as it is read.

    start  where the kept text begins
    ended  whether all of it is unpacked
    """

    source: ObjectBytes
    unpacking: Unpacking
    start: int = 0
    text: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def read(self, begin: int, length: int) -> bytes:
        """Return text [begin, begin + length), less at the end; little of what is before `begin` is kept."""
        while not self.ended and self.start + len(self.text) < begin + length:
            piece = self.unpacking.piece(self.source)
            self.ended = not piece
            self.text += piece
            self._forget(begin)
        self._forget(begin)
        return bytes(self.text[begin - self.start : begin - self.start + length])

    def _forget(self, begin: int) -> None:
        passed = max(min(begin - self.start, len(self.text)) - PIECE, 0)
        del self.text[:passed]
        self.start += passed

    @property
    def cost(self) -> int:
        return self.unpacking.memory + len(self.text) + self.source.held


_texts: OrderedDict[tuple[str, str, str], ForwardText] = OrderedDict()
"""Texts that this process has begun to unpack, by object, version and role; the one that was not used for longest first."""


@dataclass(frozen=True, slots=True)
class PackedObject:
    """A compressed object."""

    source: ObjectBytes
    form: Compression

    def fetch(self, start: int, role: str) -> None:
        known = _texts.get(self._key(role))
        if known is None or known.start > start:
            self.source.pread(1, 0)

    def rows_after(self, start: int, rows: int) -> RowsEnd:
        known, counted, end, stop = self._text(start, "plan"), 0, start, start
        for at, text in _pieces(known, start):
            stop = at + len(text)
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)[: rows - counted]
            if len(ends):
                counted, end = counted + len(ends), at + int(ends[-1]) + 1
            if counted == rows:
                break
        last = end < stop or bool(known.read(stop, 1))  # a last line without a line end is a row
        if counted == rows and last:
            return RowsEnd(end, counted)
        _texts.pop(self._key("plan"), None)
        return RowsEnd(None, counted + last)

    def first_line(self) -> LineBlock:
        unpacking, text, begin = Unpacking(self.form, size=self.source.size), bytearray(), 0
        while piece := unpacking.piece(self.source):
            text += piece
            while end := text.find(b"\n", begin) + 1:
                if end - 1 not in unpacking.damages:
                    return LineBlock(begin, end, bytes(text[begin:end]))
                begin = end
            if len(text) - begin > LONGEST:
                break
        return LineBlock(begin, len(text), bytes(text[begin:]))

    def line_length(self, start: int) -> float | None:
        text = self._text(start, "scout").read(start, LOOK)
        return (text.rfind(b"\n") + 1) / count if (count := text.count(b"\n")) else None

    def sample(self, near: int, lines: int) -> tuple[int, int]:
        """Return the first complete lines after `near`, or the last ones if the text ends before it."""
        before = max(near - 1, 0)
        known = self._text(before, "scout")
        if before - known.start > _AHEAD:
            return near, near
        text = known.read(before, LOOK)
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + before + 1
        if len(ends) > (near > 0):
            return (int(ends[0]) if near else 0), int(ends[near > 0 :][:lines][-1])
        ends = np.flatnonzero(np.frombuffer(bytes(known.text), np.uint8) == 10)[-lines - 1 :] + known.start + 1
        return (int(ends[0]), int(ends[-1])) if len(ends) > 1 else (near, near)

    def blocks(self, start: int, end: int | None) -> Iterator[LineBlock]:
        known, lines = self._text(start, "rows"), LineCutter(start)
        for at, text in _pieces(known, start, end):
            yield from lines.add(text, {one: why for one, why in known.unpacking.damages.items() if one >= at})
        yield from lines.rest()
        if end is None:
            _texts.pop(self._key("rows"), None)

    def _key(self, role: str) -> tuple[str, str, str]:
        return str(self.source.place), self.source.stamp, role

    def _text(self, start: int, role: str) -> ForwardText:
        """Return this process's text of the object from `start` on: the one that was read last, or one from its beginning."""
        key = self._key(role)
        known = _texts.pop(key, None)
        if known is None or known.start > start:
            known = ForwardText(self.source, Unpacking(self.form, size=self.source.size))
        _texts[key] = known
        cost = sum(one.cost for one in _texts.values())
        while cost > _MEMORY and len(_texts) > 1:
            cost -= _texts.popitem(last=False)[1].cost
        return known


def _pieces(known: ForwardText, start: int, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the text of [start, end) in pieces, each with its place."""
    while end is None or start < end:
        text = known.read(start, PIECE if end is None else min(PIECE, end - start))
        if not text:
            return
        yield start, text
        start += len(text)
