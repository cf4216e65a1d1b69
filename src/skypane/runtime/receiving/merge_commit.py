"""Write a merged block of lines, and how far the inputs are merged with it, exactly once.

    block: place and lines -> file `merge` (fsync, rename) -> log of merged lines -> log of rejected lines

The file `merge` has all of a block before a line of it is in a log. After a kill, what the logs lack of it is appended:
their ends show how much. Whatever the kill, a line of an input is then in one of the logs, and there once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from skypane.locations import whole
from skypane.runtime.receiving.log import SegmentLog
from skypane.snapshots import JsonState, from_json, to_json
from skypane.types import CheckpointError, Micros

MERGED: Final = "by-time"
"""The folder of the merged log, beside the logs of the inputs."""
REJECTED: Final = "by-time-rejected"
"""The folder of the log of lines that have no place in the order."""
_FILE: Final = "merge"


@dataclass(frozen=True, slots=True)
class MergePlace(JsonState):
    """How far the inputs are merged.

    at        the offset in each input's log up to which it is merged, by name
    newest    the time of the last merged line of each input, by name
    merged    the end of the log of merged lines
    rejected  the end of the log of rejected lines
    """

    at: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    newest: Mapping[str, Micros] = field(default_factory=lambda: MappingProxyType({}))
    merged: int = 0
    rejected: int = 0

    @property
    def time(self) -> Micros | None:
        """The time of the last merged line; None before the first."""
        return max(self.newest.values(), default=None)


class MergeCommit:
    """Appends blocks to the merged and the rejected log of a receiver's folder."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._file = folder / MERGED / _FILE
        self._logs: list[SegmentLog] = []
        try:
            for name in (MERGED, REJECTED):
                self._logs.append(SegmentLog(folder / name, segment_bytes))
            for draft in self._file.parent.glob(f"{_FILE}.*.part"):  # of a receiver that was killed
                draft.unlink()
            self.place = self.recovered()
        except BaseException:
            self.close()
            raise

    def recovered(self) -> MergePlace:
        """Append what the logs lack of the last block, and return the place after it."""
        try:
            head, _, lines = self._file.read_bytes().partition(b"\n")
        except FileNotFoundError:
            place, size, lines = MergePlace(), 0, b""
        else:
            place, size = _parsed(head, self._file)
        merged, rejected = self._logs
        for log, text, end in ((merged, lines[:size], place.merged), (rejected, lines[size:], place.rejected)):
            missing = end - log.end
            if not 0 <= missing <= len(text):
                raise CheckpointError(
                    f"the log {log.folder} ends at byte {log.end:,}, but {self._file} states {end:,}: one of them was "
                    "replaced; restore both from a copy, or use another folder"
                )
            log.append(text[len(text) - missing :])
        self.place = place
        return place

    def write(self, at: Mapping[str, int], newest: Mapping[str, Micros], merged: bytes, rejected: bytes) -> None:
        """Write a block, with the newest time of each input in it.

        Raises OSError if it cannot be written: then recovered() must be called before the next one.
        """
        place = replace(
            self.place, at=at, newest={**self.place.newest, **newest}, merged=self.place.merged + len(merged),
            rejected=self.place.rejected + len(rejected),
        )  # fmt: skip
        head = json.dumps({"place": to_json(place), "merged": len(merged)}).encode()
        with whole(self._file) as draft, draft.open("wb") as file:
            file.write(head + b"\n" + merged + rejected)
            file.flush()
            os.fsync(file.fileno())
        _sync(self._file.parent)
        self._logs[0].append(merged)
        self._logs[1].append(rejected)
        self.place = place

    def close(self) -> None:
        """Close both logs."""
        for log in self._logs:
            log.close()


def _parsed(head: bytes, file: Path) -> tuple[MergePlace, int]:
    """Return the place of a block, and the bytes of its merged lines."""
    with suppress(ValueError, KeyError, TypeError, CheckpointError):
        value = json.loads(head)
        return from_json(MergePlace, value["place"]), int(value["merged"])
    raise CheckpointError(
        f"{file} cannot be read: restore it from a copy, with the logs beside it, or use another folder"
    )


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
