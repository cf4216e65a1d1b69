"""A file that grows by whole lines: what is complete of it, and where its next n lines end.

A place in it is a count of bytes. A last line without its end is not complete, and is left until its end has come.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_BLOCK = 1 << 20
LOOK = 1 << 16
"""Bytes that are looked at for the length of lines."""
_CHUNK = 4 << 20
"""Bytes of lines that are handed on at a time."""


LONGEST = 64 << 20
"""Bytes of a line, at most: of a longer one only the beginning is read, since it may be longer than there is memory."""
_BEGINNING = 1 << 10


class Block(NamedTuple):
    """Lines of [start, end) of a file; not whole if they are the beginning of a line that is too long."""

    start: int
    end: int
    text: bytes
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Growing:
    """A file, which may not be there."""

    path: str

    def size(self) -> int | None:
        """Return how many bytes there are; None if there is no file."""
        try:
            return os.stat(self.path).st_size  # noqa: PTH116
        except FileNotFoundError:
            return None

    def complete(self, start: int, end: int) -> int:
        """Return where the last complete line of [start, end) ends, at least `start`: reads back from the end."""
        with open(self.path, "rb") as file:  # noqa: PTH123
            while end > start:
                begin = max(start, end - _BLOCK)
                file.seek(begin)
                at = file.read(end - begin).rfind(b"\n")
                if at >= 0:
                    return begin + at + 1
                end = begin
        return start

    def after(self, start: int, lines: int, stop: int | None = None) -> tuple[int, int]:
        """Return where the next `lines` complete lines of [start, stop) end, and how many there are of them."""
        counted, end, at = 0, start, start
        with open(self.path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            while counted < lines and (block := file.read(_BLOCK if stop is None else max(min(_BLOCK, stop - at), 0))):
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)[: lines - counted]
                if len(ends):
                    counted, end = counted + len(ends), at + int(ends[-1]) + 1
                at += len(block)
        return end, counted

    def line_length(self, start: int) -> float | None:
        """Return how many bytes a line after `start` has, on average, as far as a look tells; None if none is complete there."""
        block = self.read(start, start + LOOK)
        lines = block.count(b"\n")
        return (block.rfind(b"\n") + 1) / lines if lines else None

    def read(self, start: int, end: int) -> bytes:
        """Return bytes [start, end); fewer if the file has become shorter."""
        with open(self.path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            return file.read(end - start)

    def blocks(self, start: int, end: int) -> Iterator[Block]:
        """Yield the whole lines of [start, end), some at a time; of one that is too long its beginning.

        Raises EOFError if the file has become shorter; FileNotFoundError if it is gone.
        """
        while start < end:
            block = self._block(start, end)
            if not block.text:
                raise EOFError(f"{self.path} ends before byte {end:,}")
            yield block
            start = block.end

    def _block(self, start: int, end: int) -> Block:
        text = self.read(start, min(start + _CHUNK, end))
        if start + len(text) >= end:
            return Block(start, start + len(text), text)
        if whole := text[: text.rfind(b"\n") + 1]:
            return Block(start, start + len(whole), whole)
        return self._long_line(start, end)

    def _long_line(self, start: int, end: int) -> Block:
        """Return a line that is longer than what is handed on at a time."""
        stop = min(self.after(start, 1)[0], end)
        if stop - start <= LONGEST:
            return Block(start, stop, self.read(start, stop))
        return Block(start, stop, self.read(start, start + _BEGINNING), whole=False)
