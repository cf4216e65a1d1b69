"""The bytes of one version of an object, requested in ranges; any other version is refused."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from skypane.locations import Location
from skypane.runtime.objects.folder_listing import stamp_of
from skypane.runtime.stores import s3_addresses
from skypane.runtime.stores.object_client import in_words

if TYPE_CHECKING:
    from obstore import GetOptions

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
        self._answer({"head": True})

    @property
    def held(self) -> int:
        """Bytes that are kept for the next range."""
        return len(self._kept)

    def _requested(self, begin: int, end: int) -> bytes:
        try:
            return self._answer({"range": (begin, end)})
        except OSError:
            self.check()  # a shorter version may have no such range
            raise

    def _answer(self, options: GetOptions) -> bytes:
        lost = "was removed"
        for client, key in s3_addresses.clients_of(self.place):
            with suppress(FileNotFoundError), in_words(str(self.place), self.place.authority):
                found = client.get(key, options=options)
                if stamp_of(found.meta) == self.stamp:
                    return bytes(found.bytes())
                lost = "was written again"
        raise ObjectLostError(lost)

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
