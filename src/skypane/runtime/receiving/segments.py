"""A log as it lies on disk: whole lines in segment files, each named by the place where it begins.

    <folder>/00000000000000000000.segment     bytes [0, 1000) of the log
    <folder>/00000000000000001000.segment     from 1000 on; lines are added to the last one
    <folder>/....sums                         checksums of a segment's blocks (sums.py)
    <folder>/checked                          from which segment on there are checksums
    <folder>/end                              how far the log is on disk for good, as a number
    <folder>/.receiver                        held by the one receiver that writes

A place is a count of bytes since the log began, and stays what it is when old segments are removed. Readers go up to
`end` and no further: what they have read is there after any crash. A line is never divided between two segments.
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
"""Looks at a number that is being overwritten."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes [begin, end) of a log, in a file."""

    begin: int
    end: int
    path: str


def segment_name(begin: int) -> str:
    """Return the name of the file that begins at a place: names are in the order of places."""
    return f"{begin:0{_DIGITS}d}{SUFFIX}"


def end_text(place: int) -> bytes:
    """Return what the file `end` says: the place twice, so that one who reads while it is overwritten can tell."""
    return f"{place:0{_DIGITS}d}\n".encode() * 2


def is_log(folder: str) -> bool:
    """Return whether a receiver has written here."""
    return os.path.isfile(os.path.join(folder, END))  # noqa: PTH113, PTH118 - asked for hundreds of folders a batch


def end_of(folder: str) -> int | None:
    """Return how far the log is on disk for good; None if nobody has written, or a crash has damaged the number.

    The next start of a receiver writes it anew.
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
    """Return where the oldest segment that is left begins; None if there is none."""
    try:
        with os.scandir(folder) as entries:
            return min((begin for entry in entries if (begin := _begin(entry.name)) is not None), default=None)
    except FileNotFoundError:
        return None


def segments_of(folder: str) -> list[Segment]:
    """Return the segments that are there, in order; the last one may hold a line that is not whole."""
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
    """Return the bytes of a file; None if it was removed since it was listed, as old segments are while others are read."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return None


def _begin(name: str) -> int | None:
    """Return where the segment of that name begins; None for another file."""
    stem = name.removesuffix(SUFFIX)
    return int(stem) if stem != name and stem.isdecimal() else None


def between(folder: str, start: int, end: int) -> list[Segment]:
    """Return the parts of files that hold bytes [start, end), in order: their segments' begins and ends are cut to it.

    Raises CheckpointError, naming the place, where a part is not there.
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
        there = "nothing is there after it" if after is None else f"what is there goes on at {after:,}"
        raise CheckpointError(
            f"the log {folder} lacks its bytes from {at:,} on, and {there}: segments were removed before they were read; "
            "restore them from a copy"
        )
    return parts
