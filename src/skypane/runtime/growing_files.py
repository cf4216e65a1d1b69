"""A file that grows by whole lines: find its complete part, and where its next n lines end.

Offsets count bytes. A last line without a line end is incomplete, and is not read before its end is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

_BLOCK = 1 << 20
LOOK = 1 << 16
"""Bytes that are sampled for the length of lines."""
CHUNK = 4 << 20
"""Bytes of lines that are yielded at a time."""


LONGEST = 64 << 20
"""The longest line in bytes; only the beginning of a longer one is read, because it may not fit in memory."""
BEGINNING = 1 << 10
"""Bytes of a line that cannot be read, which are reported."""


class LineBlock(NamedTuple):
    """Lines in bytes [start, end) of a file; with an `error`, `text` is the beginning of one line that cannot be read."""

    start: int
    end: int
    text: bytes
    error: str = ""

    @classmethod
    def too_long(cls, start: int, end: int, beginning: bytes) -> LineBlock:
        return cls(start, end, beginning, f"a line of {end - start:,} bytes is longer than {LONGEST:,}")


@dataclass(frozen=True, slots=True)
class GrowingFile:
    """A file that grows by lines and may not exist."""

    path: str

    def written(self) -> tuple[int, float] | None:
        """Return the size in bytes, and when the file got it, in seconds since the epoch; None if it does not exist."""
        try:
            found = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime

    def opened(self) -> BinaryIO:
        """Return the open file."""
        return open(self.path, "rb")  # noqa: PTH123 - closed by callers

    def complete(self, start: int, end: int) -> int:
        """Return where the last complete line of [start, end) ends, at least `start`; read backwards from the end."""
        with self.opened() as file:
            while end > start:
                begin = max(start, end - _BLOCK)
                file.seek(begin)
                at = file.read(end - begin).rfind(b"\n")
                if at >= 0:
                    return begin + at + 1
                end = begin
        return start

    def after(self, start: int, lines: int, stop: int | None = None) -> tuple[int, int]:
        """Return where the next complete lines of [start, stop) end, at most `lines` of them, and their number."""
        counted, end, at = 0, start, start
        with self.opened() as file:
            file.seek(start)
            while counted < lines and (block := file.read(_BLOCK if stop is None else max(min(_BLOCK, stop - at), 0))):
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)[: lines - counted]
                if len(ends):
                    counted, end = counted + len(ends), at + int(ends[-1]) + 1
                at += len(block)
        return end, counted

    def first_line(self) -> LineBlock:
        """Return the first line, or the beginning of one that is too long; one without text if it is not complete."""
        end = self.line_end(0)
        return LineBlock(0, end, self.read(0, min(end, LONGEST)))

    def line_end(self, start: int) -> int:
        """Return where the line that begins at `start` ends; `start` if it is not complete."""
        return self.after(start, 1)[0]

    def line_length(self, start: int) -> float | None:
        """Return the mean length in bytes of lines after `start`, from a sample; None if it has no complete line."""
        block = self.read(start, start + LOOK)
        lines = block.count(b"\n")
        return (block.rfind(b"\n") + 1) / lines if lines else None

    def sample(self, near: int, lines: int, stop: int) -> tuple[int, int]:
        """Return bytes [start, end) of the first complete lines of [near, stop), at most `lines` of them.

        A line that begins before `near` is left out. The range is empty if no line is found in the next LOOK bytes.
        """
        before = max(near - 1, 0)
        text = self.read(before, max(before, min(near + LOOK, stop)))
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + before + 1
        starts = ends[near > 0 :][:lines]
        if not len(starts):
            return near, near
        return (int(ends[0]) if near else 0), int(starts[-1])

    def read(self, start: int, end: int) -> bytes:
        """Return bytes [start, end); fewer if the file has become shorter."""
        with self.opened() as file:
            file.seek(start)
            return file.read(end - start)

    def blocks(self, start: int, end: int) -> Iterator[LineBlock]:
        """Yield the whole lines of [start, end) in blocks; of a line that is too long only the beginning.

        Raises EOFError if the file has become shorter; FileNotFoundError if it is gone.
        """
        while start < end:
            block = self._block(start, end)
            if not block.text:
                raise EOFError(f"{self.path} ends before byte {end:,}")
            yield block
            start = block.end

    def _block(self, start: int, end: int) -> LineBlock:
        text = self.read(start, min(start + CHUNK, end))
        if start + len(text) >= end:
            return LineBlock(start, start + len(text), text)
        if whole := text[: text.rfind(b"\n") + 1]:
            return LineBlock(start, start + len(whole), whole)
        return self._long_line(start, end)

    def _long_line(self, start: int, end: int) -> LineBlock:
        """Return a line that is longer than a block."""
        stop = min(self.line_end(start), end)
        if stop - start <= LONGEST:
            return LineBlock(start, stop, self.read(start, stop))
        return LineBlock.too_long(start, stop, self.read(start, start + BEGINNING))
