"""Numbers of lines of files, for lines that do not parse: tasks know offsets, and not how many lines are before.

A task counts the lines that it reads, which costs far less than to parse them, and remembers how many a file has up to
there. Where it has not read what is before, it counts the lines of a plain file; those of a compressed one have no number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.runtime.growing_files import CHUNK, LineBlock
from skypane.runtime.row_parser import Malformed

_MOST: Final = 10_000
"""Files of which this process remembers the lines."""

_counted: OrderedDict[str, tuple[int, int]] = OrderedDict()
"""File -> a place in it, and the number of lines before; the one that was not read for longest first."""


class LineNumbers:
    """The numbers of the lines of a file that is read from some place on.

    file  names the file in this process
    read  returns bytes [start, end) of it; None: to read what is before that place again would take long
    """

    def __init__(self, file: str, read: Callable[[int, int], bytes] | None = None) -> None:
        self._file, self._read = file, read
        self._block = LineBlock(0, 0, b"")
        #: the lines before the present block since the first one
        self._lines = 0
        self._start: int | None = None
        #: a place in the block, and the lines of the block before it
        self._at = (0, 0)

    def known(self, place: int, lines: int) -> None:
        """Take note of the number of lines before a place."""
        _counted[self._file] = (place, lines)
        _counted.move_to_end(self._file)
        while len(_counted) > _MOST:
            _counted.popitem(last=False)

    def blocks(self, blocks: Iterable[LineBlock]) -> Iterator[LineBlock]:
        """Yield blocks, and count their lines."""
        for block in blocks:
            if self._start is None:
                self._start = block.start
            elif block.start > self._block.end:
                self._lines += 1  # the line that names the columns
            self._block, self._at = block, (0, 0)
            yield block
            self._lines += 1 if block.error else _lines(block.text)
            if self._is_known(self._start) and (before := self._before) is not None:
                self.known(block.end, before + self._lines)

    def numbered(self, found: pa.Table | Malformed) -> pa.Table | Malformed:
        """Return what was found in the present block; a line that does not parse with its number."""
        if not isinstance(found, Malformed) or (before := self._before) is None:
            return found
        place = found.offset - self._block.start
        at, lines = self._at if self._at[0] <= place else (0, 0)
        lines += self._block.text.count(b"\n", at, place)
        self._at = (place, lines)
        return found._replace(number=before + self._lines + lines + 1)

    def _is_known(self, start: int) -> bool:
        """Return whether the lines before the first block are known without counting them."""
        return "_before" in self.__dict__ or not start or _counted.get(self._file, (-1, 0))[0] == start

    @cached_property
    def _before(self) -> int | None:
        start = self._start or 0
        at, lines = _counted.get(self._file, (0, 0))
        if at > start:
            at, lines = 0, 0
        while at < start:
            text = b"" if self._read is None else self._read(at, min(at + CHUNK, start))
            if not text:
                return None
            at, lines = at + len(text), lines + _lines(text)
        return lines


def _lines(text: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
