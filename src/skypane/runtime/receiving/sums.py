"""Checksums of a segment, in a file beside it: one for each block of whole appends, of 64 KiB and more.

    00000000000000000000.segment     lines
    00000000000000000000.sums        where each block ends in the segment and its CRC-32, twice each

The last block grows, and its checksum is overwritten: said twice, one who reads meanwhile can tell. It is written when the
lines are on disk, before anyone is told of them, and is not synced until the segment is full: what a power cut takes of
it, the next start of a receiver makes anew from the lines. The file `checked` says from which place on segments have
checksums: where they are gone there, that is told. Those before it, as older versions wrote them, are read as they are.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from skypane.places import whole
from skypane.runtime.growing import Growing
from skypane.types import CheckpointError

SUFFIX = ".sums"
CHECKED = "checked"
"""The file that says where the first segment with checksums begins."""
BLOCK = 1 << 16
"""Bytes after which another block begins."""

_LOOKS = 10
"""Looks at a block that is being added to."""
_SAID = re.compile(rb"(\d{12}) ([0-9a-f]{8})\n\1 \2\n")
_LENGTH = 2 * (12 + 1 + 8 + 1)


class Block(NamedTuple):
    """Bytes [begin, end) of a segment, and their CRC-32."""

    begin: int = 0
    end: int = 0
    crc: int = 0

    @property
    def said(self) -> bytes:
        return f"{self.end:012d} {self.crc:08x}\n".encode() * 2

    def with_more(self, lines: bytes) -> Block:
        """Return the block with more at its end."""
        return Block(self.begin, self.end + len(lines), zlib.crc32(lines, self.crc))


def beside(segment: str) -> Path:
    """Return the file of a segment's checksums."""
    return Path(segment).with_suffix(SUFFIX)


def remove(segment: str) -> None:
    """Remove a segment with its checksums: a segment without any would be read unchecked, and checksums alone by no one."""
    Path(segment).unlink()
    beside(segment).unlink(missing_ok=True)


def blocks_of(segment: str) -> list[Block] | None:
    """Return the blocks whose checksums can be read, up to the first one that cannot; None if there is no file of them."""
    try:
        text = beside(segment).read_bytes()
    except FileNotFoundError:
        return None
    found: list[Block] = []
    for at in range(0, len(text), _LENGTH):
        said = _SAID.fullmatch(text, at, at + _LENGTH)
        begin = found[-1].end if found else 0
        if said is None or int(said[1]) <= begin:
            break
        found.append(Block(begin, int(said[1]), int(said[2], 16)))
    return found


def check(segment: str, start: int, end: int) -> None:
    """Raise CheckpointError, naming the place, if bytes [start, end) of a segment are not what was written there."""
    for _ in range(_LOOKS):
        blocks = blocks_of(segment)
        if blocks is None:
            _check_never_there(Path(segment))
            return
        wrong = _wrong(segment, blocks, start, end)
        if wrong is None:
            return
    raise CheckpointError(
        f"{segment} is damaged after its byte {wrong:,}: its checksums in {beside(segment).name} are others; restore both "
        f"from a copy, or remove the checksums, and {CHECKED} beside them, to read what is there"
    )


def _check_never_there(segment: Path) -> None:
    """Raise CheckpointError if a segment once had checksums, and has none now."""
    since = checked_from(segment.parent)
    if since is not None and int(segment.stem) >= since and segment.exists():
        raise CheckpointError(
            f"the checksums of {segment}, {beside(str(segment)).name}, are gone: restore them from a copy, or remove "
            f"{CHECKED} beside them to read what is there"
        )


def checked_from(folder: Path) -> int | None:
    """Return where the first segment of a log begins that has checksums; None if that is not known."""
    try:
        text = (folder / CHECKED).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def note_checked(folder: Path, begin: int) -> None:
    """Note that segments have checksums from the one on that begins there, unless an earlier one is noted."""
    if checked_from(folder) is None:
        with whole(folder / CHECKED) as draft:
            draft.write_text(f"{begin}\n", encoding="ascii")


def _wrong(segment: str, blocks: list[Block], start: int, end: int) -> int | None:
    file, checked = Growing(segment), 0
    for block in blocks:
        if block.end > start and block.begin < end and not _as_written(file, block):
            return block.begin
        checked = block.end
    return checked if checked < end else None


def _as_written(file: Growing, block: Block) -> bool:
    return Block(block.begin, block.begin).with_more(file.read(block.begin, block.end)) == block


class Sums:
    """Writes the checksums of one segment, which has `length` bytes; those that there are go on."""

    def __init__(self, segment: str, length: int) -> None:
        self._file: int | None = os.open(beside(segment), os.O_RDWR | os.O_CREAT, 0o644)
        known = [block for block in blocks_of(segment) or [] if block.end <= length]
        self._number, self._last = max(len(known) - 1, 0), known[-1] if known else Block()
        os.ftruncate(self._file, len(known) * _LENGTH)
        for lines in _read(segment, self._last.end, length):
            self.add(lines)

    def add(self, lines: bytes) -> None:
        """Note what the segment has more of; OSError, with nothing noted, if that cannot be."""
        number, last = self._number, self._last
        if last.end - last.begin >= BLOCK:
            number, last = number + 1, Block(last.end, last.end)
        last = last.with_more(lines)
        self._write(number, last)
        self._number, self._last = number, last

    def restore(self) -> None:
        """Say again what was noted last: what failed may have been written."""
        assert self._file is not None  # noqa: S101 - closed by who made it
        os.ftruncate(self._file, (self._number + bool(self._last.end)) * _LENGTH)
        if self._last.end:
            self._write(self._number, self._last)

    def close(self, *, full: bool = False) -> None:
        """Let go of the file; where the segment is full, all is on disk for good."""
        if self._file is not None:
            if full:
                os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def _write(self, number: int, block: Block) -> None:
        assert self._file is not None  # noqa: S101 - closed by who made it
        os.pwrite(self._file, block.said, number * _LENGTH)


def _read(segment: str, start: int, end: int) -> Iterator[bytes]:
    file = Growing(segment)
    while start < end:
        yield (lines := file.read(start, min(start + BLOCK, end)))
        start += len(lines)
