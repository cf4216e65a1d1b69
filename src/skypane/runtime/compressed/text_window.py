"""The latest text of a compressed file that is read forward.

Text before a place can only be had by decoding the file from a mark before it. So this process keeps a file's decoder
from one call to the next, with the latest text; a range that begins where the last one ended costs its own length.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from skypane.runtime.compressed.formats import Compression, begins
from skypane.runtime.compressed.unpacking import START, Mark, Unpacking

KEPT: Final = 1 << 19
"""Bytes of text that are kept behind the place that was read last."""
_TAIL: Final = 64
"""Bytes of the file that are compared to notice a file that was written again in its place."""
_MEMORY: Final = 256 << 20
"""Bytes that all windows of a process take, about; the one that was not used for longest is closed first."""


@dataclass
class TextWindow:
    """Text [start, end) of a file that is being unpacked.

    identity   device and inode of the file: another file under its name has another text
    marks      marks of members that begin in the window, and the last one before it, ascending
    line_end   where the last line ends that was read
    seen       size of the file when all of it had been unpacked
    tail       the last bytes of the file that were unpacked
    """

    unpacking: Unpacking
    identity: tuple[int, int]
    start: int
    text: bytearray = field(default_factory=bytearray)
    marks: list[Mark] = field(default_factory=list)
    line_end: int = 0
    seen: int | None = None
    tail: bytes = b""

    @classmethod
    def at(cls, form: Compression, mark: Mark, file: BinaryIO) -> TextWindow:
        return cls(Unpacking(form, mark), _identity(file), mark.text, marks=[mark], tail=_tail(file, mark.packed))

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def read(self, file: BinaryIO, start: int, end: int) -> bytes:
        """Return text [start, end), less if the file has less now; `start` must not lie before the window."""
        while self.end < end and self._extended(file):
            self._trim(min(start, self.end))
        found = bytes(self.text[max(start - self.start, 0) : max(end - self.start, 0)])
        self._trim(self.end)
        self.tail = _tail(file, self.unpacking.packed)
        return found

    def _extended(self, file: BinaryIO) -> bool:
        """Append the next piece of text; return whether there is one."""
        piece = self.unpacking.piece(file)
        if not piece:
            self.seen = os.fstat(file.fileno()).st_size
        if (at := piece.rfind(b"\n")) >= 0:
            self.line_end = self.end + at + 1
        self.text += piece
        if (mark := self.unpacking.mark) != self.marks[-1]:
            if mark.text == self.marks[-1].text:
                self.marks.pop()
            self.marks.append(mark)
        return bool(piece)

    def _trim(self, needed: int) -> None:
        """Forget text that is further than KEPT before `needed`."""
        if (beyond := needed - KEPT - self.start) <= 0:
            return
        del self.text[:beyond]
        self.start += beyond
        del self.marks[: max(self._mark(self.start) - 1, 0)]
        damages = self.unpacking.damages
        for at in [at for at in damages if at < self.start]:
            del damages[at]

    def mark(self, text: int) -> Mark:
        """Return the last known mark up to a place of the text."""
        return self.marks[max(self._mark(text) - 1, 0)]

    def _mark(self, text: int) -> int:
        return bisect_right(self.marks, text, key=lambda mark: mark.text)

    def is_of(self, form: Compression, file: BinaryIO) -> bool:
        """Return whether the window is of the file as it is now: not of one that was under its name, or in its place."""
        packed = self.unpacking.packed
        return (
            self.identity == _identity(file)
            and self.unpacking.form.name == form.name
            and packed <= os.fstat(file.fileno()).st_size
            and self.tail == _tail(file, packed)
        )

    @property
    def cost(self) -> int:
        return self.unpacking.memory + 2 * KEPT


_windows: OrderedDict[tuple[str, str], TextWindow] = OrderedDict()


def opened(path: str, form: Compression, file: BinaryIO, role: str) -> TextWindow | None:
    """Return this process's window of a file, if it has one of the file as it is now.

    role   windows of different roles are read independently of each other
    """
    last = _windows.pop((path, role), None)
    if last is None or not last.is_of(form, file):
        return None
    _windows[path, role] = last
    return last


def window(path: str, form: Compression, file: BinaryIO, start: int, mark: Mark, role: str) -> TextWindow:
    """Return a window of a file that can read text from `start` on: the last one, or another from a mark."""
    best = _usable(mark, form, file, start)
    last = opened(path, form, file, role)
    if last is not None and last.start > start:
        best = max(best, _usable(last.mark(start), form, file, start))
        last = None
    if last is None or last.end < best.text:
        last = TextWindow.at(form, best, file)
    _windows[path, role] = last
    _close_unused()
    return last


def _identity(file: BinaryIO) -> tuple[int, int]:
    stat = os.fstat(file.fileno())
    return stat.st_dev, stat.st_ino


def _tail(file: BinaryIO, packed: int) -> bytes:
    begin = max(packed - _TAIL, 0)
    return os.pread(file.fileno(), packed - begin, begin)


def _usable(mark: Mark, form: Compression, file: BinaryIO, start: int) -> Mark:
    """Return a mark if it lies before `start` and a member begins there, or the file ends; else the file's beginning."""
    if mark.text > start or mark.packed > os.fstat(file.fileno()).st_size:
        return START
    head = os.pread(file.fileno(), form.head, mark.packed)
    return mark if not head.strip(b"\0") or begins(form, head) else START


def _close_unused() -> None:
    cost = sum(one.cost for one in _windows.values())
    while cost > _MEMORY and len(_windows) > 1:
        _, closed = _windows.popitem(last=False)
        cost -= closed.cost
