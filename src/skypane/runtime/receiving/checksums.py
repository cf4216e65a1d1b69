"""Checksums of a segment, in a file beside it: one for each block of whole appends, of at least 64 KiB.

    00000000000000000000.segment     lines
    00000000000000000000.sums        where each block ends in the segment and its CRC-32, each twice

The last block grows, and its checksum is overwritten; readers detect a write in progress because it is stored twice. A
checksum is written when the lines are on disk, before they are acknowledged, and synced only when the segment is full.
If a power cut loses it, the receiver computes it again from the lines when it starts. The file `checked` holds the
offset from which on segments have checksums; a missing checksum file after it is an error. Earlier segments, written by
older versions, are read unchecked.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from skypane.locations import whole
from skypane.runtime.growing_files import GrowingFile
from skypane.types import CheckpointError

SUFFIX = ".sums"
CHECKED = "checked"
"""The file that holds the offset of the first segment with checksums."""
BLOCK = 1 << 16
"""Bytes after which a new block begins."""

_LOOKS = 10
"""Attempts to check a block that is being written."""
_ENTRY = re.compile(rb"(\d{12}) ([0-9a-f]{8})\n\1 \2\n")
_LENGTH = 2 * (12 + 1 + 8 + 1)


class ChecksumBlock(NamedTuple):
    """Bytes [begin, end) of a segment, and their CRC-32."""

    begin: int = 0
    end: int = 0
    crc: int = 0

    @property
    def packed(self) -> bytes:
        return f"{self.end:012d} {self.crc:08x}\n".encode() * 2

    def with_more(self, lines: bytes) -> ChecksumBlock:
        """Return the block with lines appended."""
        return ChecksumBlock(self.begin, self.end + len(lines), zlib.crc32(lines, self.crc))


def beside(segment: str) -> Path:
    """Return the file of a segment's checksums."""
    return Path(segment).with_suffix(SUFFIX)


def remove(segment: str) -> None:
    """Remove a segment and its checksums; the segment goes first, because alone it might be read unchecked."""
    Path(segment).unlink()
    beside(segment).unlink(missing_ok=True)


def blocks_of(segment: str) -> list[ChecksumBlock] | None:
    """Return the blocks with readable checksums, up to the first unreadable one; None without a file of checksums."""
    try:
        text = beside(segment).read_bytes()
    except FileNotFoundError:
        return None
    found: list[ChecksumBlock] = []
    for at in range(0, len(text), _LENGTH):
        entry = _ENTRY.fullmatch(text, at, at + _LENGTH)
        begin = found[-1].end if found else 0
        if entry is None or int(entry[1]) <= begin:
            break
        found.append(ChecksumBlock(begin, int(entry[1]), int(entry[2], 16)))
    return found


def check(segment: str, start: int, end: int) -> None:
    """Raise CheckpointError, naming the offset, if bytes [start, end) of a segment do not match their checksums."""
    for _ in range(_LOOKS):
        blocks = blocks_of(segment)
        if blocks is None:
            _check_never_there(Path(segment))
            return
        wrong = _wrong(segment, blocks, start, end)
        if wrong is None:
            return
    raise CheckpointError(
        f"{segment} is damaged after its byte {wrong:,}: it does not match the checksums in {beside(segment).name}; "
        f"restore both from a copy, or remove the checksums and {CHECKED} beside them to read what is there"
    )


def _check_never_there(segment: Path) -> None:
    """Raise CheckpointError if a segment has lost its checksums."""
    since = checked_from(segment.parent)
    if since is not None and int(segment.stem) >= since and segment.exists():
        raise CheckpointError(
            f"the checksums of {segment}, {beside(str(segment)).name}, are missing; restore them from a copy, or "
            f"remove {CHECKED} beside them to read what is there"
        )


def checked_from(folder: Path) -> int | None:
    """Return where the first segment with checksums of a log begins; None if unknown."""
    try:
        text = (folder / CHECKED).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def note_checked(folder: Path, begin: int) -> None:
    """Record that the segment at `begin` and all later ones have checksums, unless an earlier one is recorded."""
    if checked_from(folder) is None:
        with whole(folder / CHECKED) as draft:
            draft.write_text(f"{begin}\n", encoding="ascii")


def _wrong(segment: str, blocks: list[ChecksumBlock], start: int, end: int) -> int | None:
    file, checked = GrowingFile(segment), 0
    for block in blocks:
        if block.end > start and block.begin < end and not _as_written(file, block):
            return block.begin
        checked = block.end
    return checked if checked < end else None


def _as_written(file: GrowingFile, block: ChecksumBlock) -> bool:
    return ChecksumBlock(block.begin, block.begin).with_more(file.read(block.begin, block.end)) == block


class ChecksumWriter:
    """Writes the checksums of one segment, which has `length` bytes now; existing checksums are continued."""

    def __init__(self, segment: str, length: int) -> None:
        self._file: int | None = os.open(beside(segment), os.O_RDWR | os.O_CREAT, 0o644)
        known = [block for block in blocks_of(segment) or [] if block.end <= length]
        self._number, self._last = max(len(known) - 1, 0), known[-1] if known else ChecksumBlock()
        os.ftruncate(self._file, len(known) * _LENGTH)
        for lines in _read(segment, self._last.end, length):
            self.add(lines)

    def add(self, lines: bytes) -> None:
        """Add the checksum of appended lines; raise OSError, with nothing added, if it cannot be written."""
        number, last = self._number, self._last
        if last.end - last.begin >= BLOCK:
            number, last = number + 1, ChecksumBlock(last.end, last.end)
        last = last.with_more(lines)
        self._write(number, last)
        self._number, self._last = number, last

    def restore(self) -> None:
        """Write the last valid checksum again, because a failed write may have changed the file."""
        assert self._file is not None  # noqa: S101 - closed by its owner
        os.ftruncate(self._file, (self._number + bool(self._last.end)) * _LENGTH)
        if self._last.end:
            self._write(self._number, self._last)

    def close(self, *, full: bool = False) -> None:
        """Close the file, after a sync if the segment is full."""
        if self._file is not None:
            if full:
                os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def _write(self, number: int, block: ChecksumBlock) -> None:
        assert self._file is not None  # noqa: S101 - closed by its owner
        os.pwrite(self._file, block.packed, number * _LENGTH)


def _read(segment: str, start: int, end: int) -> Iterator[bytes]:
    file = GrowingFile(segment)
    while start < end:
        yield (lines := file.read(start, min(start + BLOCK, end)))
        start += len(lines)
