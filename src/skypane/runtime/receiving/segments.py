"""Layout of a log on disk: whole lines in segment files, each named by the offset at which it begins.

    <folder>/00000000000000000000.segment     bytes [0, 1000) of the log
    <folder>/00000000000000001000.segment     from 1000 on; lines are appended to the last segment
    <folder>/....sums                         checksums of a segment's blocks (checksums.py)
    <folder>/checked                          the first segment that has checksums
    <folder>/end                              the log's durable end, as a number
    <folder>/.receiver                        locked by the one receiver that writes

Offsets count bytes since the log began, and do not change when old segments are removed. Readers read only up to `end`,
so that everything they have read survives a crash. A line is never divided between two segments.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from skypane.types import CheckpointError

SUFFIX = ".segment"
END = "end"
_DIGITS = 20
_LOOKS = 10
"""Attempts to read a number while it is being overwritten."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes [begin, end) of a log, in a file."""

    begin: int
    end: int
    path: str


def segment_name(begin: int) -> str:
    """Return the name of the segment that begins at an offset; names sort in the order of offsets."""
    return f"{begin:0{_DIGITS}d}{SUFFIX}"


def end_text(place: int) -> bytes:
    """Return the content of the file `end`: the offset twice, so that readers detect a write in progress."""
    return f"{place:0{_DIGITS}d}\n".encode() * 2


def is_log(folder: str) -> bool:
    """Return whether a folder is a receiver's log."""
    return os.path.isfile(os.path.join(folder, END))  # noqa: PTH113, PTH118 - called for hundreds of folders a batch


def end_of(folder: str) -> int | None:
    """Return the durable end of a log; None if there is no log, or a crash has damaged the number.

    The receiver writes the number again when it starts.
    """
    for _ in range(_LOOKS):
        try:
            first, _, second = Path(folder, END).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if first.isdigit() and second == first + b"\n":
            return int(first)
    return None


def first_of(folder: str) -> int | None:
    """Return where the oldest remaining segment begins; None without segments."""
    try:
        with os.scandir(folder) as entries:
            return min((begin for entry in entries if (begin := _begin(entry.name)) is not None), default=None)
    except FileNotFoundError:
        return None


def segments_of(folder: str) -> list[Segment]:
    """Return the existing segments, in order; the last one may end within a line."""
    try:
        with os.scandir(folder) as entries:
            found = [
                (begin, size, entry.path)
                for entry in entries
                if (begin := _begin(entry.name)) is not None and (size := _size(entry)) is not None
            ]
    except FileNotFoundError:
        return []
    return [Segment(begin, begin + size, path) for begin, size, path in sorted(found)]


def _size(entry: os.DirEntry[str]) -> int | None:
    """Return the size of a file; None if it was removed after it was listed, as old segments may be."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return None


def _begin(name: str) -> int | None:
    """Return where the segment of that name begins; None for other files."""
    stem = name.removesuffix(SUFFIX)
    return int(stem) if stem != name and stem.isdecimal() else None


def between(folder: str, start: int, end: int) -> list[Segment]:
    """Return the segments that hold bytes [start, end), in order.

    Raises CheckpointError, naming the offset, if a part is missing.
    """
    segments = segments_of(folder)
    first = max(bisect_right([one.begin for one in segments], start) - 1, 0)
    parts, at = [], start
    for one in segments[first:]:
        if at >= end or one.begin > at:
            break
        if one.end > at:
            parts.append(one)
            at = one.end
    if at < end:
        after = next((one.begin for one in segments if one.begin > at), None)
        there = "no bytes follow" if after is None else f"the next bytes are at {after:,}"
        raise CheckpointError(
            f"the log {folder} lacks its bytes from {at:,} on, {there}: segments were removed before they were read; "
            "restore them from a copy"
        )
    return parts
