"""A compressed file whose text grows by whole members. Offsets count bytes of the text, as `zcat` prints it.

A text cannot be read from its middle on, so what it costs to find lines depends on where the last call ended: the next
lines cost their own length, and lines before it those from the member's beginning on. How long the text is, is known
only when all of it was unpacked. Until then its length is an estimate.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import numpy as np

from skypane.runtime.compressed.formats import Compression
from skypane.runtime.compressed.text_window import KEPT, TextWindow, opened, window
from skypane.runtime.compressed.unpacking import PIECE, START, Mark, Unpacking
from skypane.runtime.growing_files import BEGINNING, CHUNK, LONGEST, LOOK, LineBlock

_PLAN: Final = "plan"
"""Role of the window that the driver plans batches with."""
_SCOUT: Final = "scout"
"""Role of the window that looks at lines ahead of those of a batch."""
_ROWS: Final = "rows"
"""Role of the window that tasks read rows with."""
_AHEAD: Final = 64 << 20
"""Bytes of text that a sample may lie ahead of what was read, at most: it has to be unpacked up to there."""
_LOOKED: Final = KEPT // 4
"""Bytes of text after what was read that are unpacked to estimate the length of all."""
_RATIO: Final = 4.0
"""Bytes of text that are expected of a byte of a file of which nothing is unpacked yet."""


@dataclass(frozen=True, slots=True)
class CompressedFile:
    """A compressed file that grows by whole members, or is complete when it appears. It may not exist.

    mark   where a member is known to begin, from which on it can be unpacked
    """

    path: str
    form: Compression
    mark: Mark = START

    def length(self, read: int) -> tuple[int, bool] | None:
        """Return the length of the text, and whether it is exact or an estimate; None if the file does not exist.

        The file is unpacked up to `read`, the bytes that were read before, unless these are known to be all. A text that
        ends before `read` has lost bytes.
        """
        try:
            size = os.stat(self.path).st_size  # noqa: PTH116
            if self.mark == (size, read):
                return read, True
            with self._open() as file:
                known = opened(self.path, self.form, file, _PLAN)
                if known is None and not read:
                    return max(int(size * _RATIO), 1), False
                if known is None or known.end < read:
                    known = self._window(file, read, _PLAN)
                    known.read(file, read, read)
                if known.end < read + _LOOKED and known.seen != size:
                    known.read(file, known.end, read + _LOOKED)  # after which a short text is known
        except FileNotFoundError:
            return None
        if known.end < read and known.unpacking.waits:
            return read, True  # what was read is perhaps of the member that has not ended
        if known.end < read or known.seen == size:
            return known.end, True
        return known.unpacking.known + max(int((size - known.unpacking.packed) * _ratio(known)), PIECE), False

    def settled(self, read: int) -> tuple[int, int] | None:
        """Return where the last complete line ends, at least `read`, and how many bytes follow of a line or member that is not.

        None if not all of the file is unpacked.
        """
        with suppress(FileNotFoundError):
            if self.mark == (size := os.stat(self.path).st_size, read):  # noqa: PTH116
                return read, 0
            with self._open() as file:
                known = opened(self.path, self.form, file, _PLAN)
            if known is not None and known.seen == size:
                last, unpacking = max(read, known.line_end), known.unpacking
                return last, max(known.end - last, 0) + (size - unpacking.mark.packed if unpacking.waits else 0)
        return None

    def mark_at(self, text: int) -> Mark:
        """Return the last mark up to a place of the text that is known."""
        try:
            with self._open() as file:
                known = opened(self.path, self.form, file, _PLAN)
        except FileNotFoundError:
            known = None
        return self.mark if known is None or known.end < text else known.mark(text)

    def complete(self, start: int, end: int | None) -> int:
        """Return where the last complete line of [start, end) ends, at least `start`; None: of all of the file."""
        with self._open() as file:
            known = opened(self.path, self.form, file, _PLAN)
            if known is None or known.end < start or end is not None:
                known = self._window(file, start, _PLAN)
            if end is None:
                known.read(file, sys.maxsize, sys.maxsize)
                return max(start, known.line_end)
            last = start
            for at, text in _pieces(known, file, start, end):
                last = max(last, at + text.rfind(b"\n") + 1) if b"\n" in text else last
            return last

    def after(self, start: int, lines: int, end: int | None = None) -> tuple[int, int]:
        """Return where the next complete lines of [start, end) end, at most `lines` of them, and their number."""
        counted, last = 0, start
        with self._open() as file:
            for at, text in _pieces(self._window(file, start, _PLAN), file, start, end):
                ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)[: lines - counted]
                if len(ends):
                    counted, last = counted + len(ends), at + int(ends[-1]) + 1
                if counted == lines:
                    break
        return last, counted

    def line_length(self, start: int) -> float | None:
        """Return the mean length in bytes of lines after `start`, from a sample; None if it has no complete line."""
        with self._open() as file:
            text = self._window(file, start, _PLAN).read(file, start, start + LOOK)
        return (text.rfind(b"\n") + 1) / count if (count := text.count(b"\n")) else None

    def sample(self, near: int, lines: int, read: int) -> tuple[int, int]:
        """Return bytes [start, end) of the first complete lines from `near` on, at most `lines` of them.

        `read` is where the next batch begins. The range is empty if unpacking up to there would take long.
        """
        before = max(near - 1, 0)
        with self._open() as file:
            known = self._sampled(file, before, read)
            text = b"" if known is None else known.read(file, before, near + LOOK)
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + before + 1
        starts = ends[near > 0 :][:lines]
        if not len(starts):
            return near, near
        return (int(ends[0]) if near else 0), int(starts[-1])

    def _sampled(self, file: BinaryIO, before: int, read: int) -> TextWindow | None:
        """Return a window that has text from `before` on soon, and keeps the next rows of the batch if it is the plan's."""
        known = opened(self.path, self.form, file, _PLAN)
        if known is not None and known.start <= before and before + 2 * LOOK <= known.start + KEPT:
            return known
        scout = opened(self.path, self.form, file, _SCOUT)
        if before - read > _AHEAD or (scout is not None and scout.start > before):
            return None
        return self._window(file, before, _SCOUT)

    def first_line(self) -> LineBlock:
        """Return the first line that can be read, or the beginning of one that is too long; else one without text."""
        unpacking, text, begin = Unpacking(self.form), bytearray(), 0
        with self._open() as file:
            while piece := unpacking.piece(file):
                text += piece
                end = text.find(b"\n", begin, begin + LONGEST) + 1
                if end and end - 1 in unpacking.damages:
                    begin = end
                elif end or len(text) - begin > LONGEST:
                    end = end or self.after(begin, 1)[0]
                    return LineBlock(begin, end, bytes(text[begin:end]))
        return LineBlock(0, 0, b"")

    def blocks(self, start: int, end: int) -> Iterator[LineBlock]:
        """Yield the whole lines of [start, end) in blocks; of a line that cannot be read, its beginning and the error.

        Raises EOFError if the file has become shorter; FileNotFoundError if it is gone.
        """
        with self._open() as file:
            known = self._window(file, start, _ROWS)
            lines = LineCutter(start)
            for at, text in _pieces(known, file, start, end):
                yield from lines.add(text, {one: why for one, why in known.unpacking.damages.items() if one >= at})
            if lines.end < end:
                raise EOFError(f"the text of {self.path} ends before byte {end:,}")
            yield from lines.rest()

    def _window(self, file: BinaryIO, start: int, role: str) -> TextWindow:
        return window(self.path, self.form, file, start, self.mark, role)

    def _open(self) -> BinaryIO:
        return open(self.path, "rb")  # noqa: PTH123 - closed by callers


def _ratio(known: TextWindow) -> float:
    """Return the bytes of text of a byte of the file, as far as it is unpacked."""
    unpacked = known.unpacking.packed - known.marks[0].packed
    return (known.unpacking.known - known.marks[0].text) / unpacked if unpacked else _RATIO


def _pieces(known: TextWindow, file: BinaryIO, start: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield the text of [start, end) in pieces, each with its place; less if the file has less."""
    while end is None or start < end:
        text = known.read(file, start, start + PIECE if end is None else min(start + PIECE, end))
        if not text:
            return
        yield start, text
        start += len(text)


@dataclass(slots=True)
class LineCutter:
    """Cuts a text that comes in pieces into blocks of whole lines.

    start   where the kept text begins
    end     where the text so far ends
    long    whether the kept text is the beginning of a line that is too long
    """

    start: int
    end: int = field(init=False)
    text: bytearray = field(default_factory=bytearray)
    long: bool = False

    def __post_init__(self) -> None:
        self.end = self.start

    def add(self, text: bytes, damages: dict[int, str]) -> Iterator[LineBlock]:
        """Append a text, with the line ends in it that mark damage; yield what is complete."""
        begin = self.end
        for at in sorted(damages):
            if begin <= at < self.end + len(text):
                yield from self._appended(text[begin - self.end : at - self.end], begin)
                yield from self._cut(at + 1, damages[at])
                begin = at + 1
        rest, self.end = text[begin - self.end :], self.end + len(text)
        yield from self._appended(rest, begin)

    def rest(self) -> Iterator[LineBlock]:
        """Yield what is left."""
        if self.long:
            yield LineBlock.too_long(self.start, self.end, bytes(self.text))
        elif self.text:
            yield LineBlock(self.start, self.end, bytes(self.text))

    def _appended(self, text: bytes, begin: int) -> Iterator[LineBlock]:
        # A kept text of so many bytes has no line end.
        if len(self.text) >= CHUNK and len(self.text) + (text.find(b"\n") + 1 or len(text)) > LONGEST:
            self.long = True
            del self.text[BEGINNING:]
        if self.long:
            if (at := text.find(b"\n")) < 0:
                return
            yield LineBlock.too_long(self.start, begin + at + 1, bytes(self.text))
            self.start, self.text, self.long = begin + at + 1, bytearray(), False
            text = text[at + 1 :]
        self.text += text
        if len(self.text) >= CHUNK and (whole := self.text.rfind(b"\n") + 1):
            yield self._taken(whole)

    def _cut(self, end: int, why: str) -> Iterator[LineBlock]:
        """Yield the whole lines, and the line that damage has cut off, up to `end`."""
        if not self.long and (whole := self.text.rfind(b"\n") + 1):
            yield self._taken(whole)
        yield LineBlock(self.start, end, bytes(self.text[:BEGINNING]), why)
        self.start, self.text, self.long = end, bytearray(), False

    def _taken(self, length: int) -> LineBlock:
        taken = LineBlock(self.start, self.start + length, bytes(self.text[:length]))
        del self.text[:length]
        self.start += length
        return taken
