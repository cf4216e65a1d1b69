"""The bytes of one version of an object, requested in ranges; any other version is refused."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

from skypane.locations import Location
from skypane.runtime.objects.folder_listing import stamp_of
from skypane.runtime.stores.object_client import client_of, in_words

AHEAD: Final = 8 << 20
"""Bytes that one request reads, at least: several small ranges cost one request, and small objects one each."""
GLANCE: Final = 1 << 17
"""The same for a few lines."""


class ObjectLostError(Exception):
    """The version of an object is no longer there; the text says why."""


@dataclass
class ObjectBytes:
    """A version of an object.

    place  the object
    size   in bytes
    stamp  the version
    ahead  bytes that a request reads, at least, if there are so many
    """

    place: Location
    size: int
    stamp: str
    ahead: int = AHEAD
    _at: int = 0
    _kept: bytes = field(default=b"", repr=False)

    def pread(self, length: int, at: int) -> bytes:
        """Return `length` bytes from a place on, fewer at the end; raise ObjectLostError for another version."""
        end = min(at + length, self.size)
        if at >= end:
            return b""
        if not self._at <= at <= end <= self._at + len(self._kept):
            self._kept, self._at = self._requested(at, min(max(end, at + self.ahead), self.size)), at
        return self._kept[at - self._at : end - self._at]

    def check(self) -> None:
        """Raise ObjectLostError unless this version is there."""
        try:
            with in_words(str(self.place), self.place.authority):
                found = stamp_of(client_of(self.place).head(self._key))
        except FileNotFoundError as error:
            raise ObjectLostError("was removed") from error
        if found != self.stamp:
            raise ObjectLostError("was written again") from None

    @property
    def held(self) -> int:
        """Bytes that are kept for the next range."""
        return len(self._kept)

    @property
    def _key(self) -> str:
        return self.place.path.strip("/")

    def _requested(self, begin: int, end: int) -> bytes:
        try:
            with in_words(str(self.place), self.place.authority):
                found = client_of(self.place).get(self._key, options={"range": (begin, end)})
                changed = stamp_of(found.meta) != self.stamp
                data = b"" if changed else bytes(found.bytes())
        except FileNotFoundError as error:
            raise ObjectLostError("was removed") from error
        except OSError:
            self.check()  # a shorter version may have no such range
            raise
        if changed:
            raise ObjectLostError("was written again")
        return data

    def opened(self) -> BinaryIO:
        """Return the bytes as a file."""
        return cast("BinaryIO", _ObjectFile(self))


class _ObjectFile(io.RawIOBase):
    """A file of the bytes of an object."""

    def __init__(self, source: ObjectBytes) -> None:
        self._source, self._place = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._source.size}
        self._place = base[whence] + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._source.pread(len(view), self._place)
        view[: len(data)] = data
        self._place += len(data)
        return len(data)
