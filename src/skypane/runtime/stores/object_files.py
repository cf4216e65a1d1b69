"""Objects as files for pyarrow: read in ranges, one request each; written in parts, if they are long."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_PART: Final = 10 << 20
"""Bytes from which an object is written in parts."""

InWords: TypeAlias = Callable[[], AbstractContextManager[None]]


class ObjectReader:
    """A file that is read; its size is requested only when it is needed."""

    def __init__(self, client: Client, key: str, in_words: InWords) -> None:
        self._client, self._key, self._in_words = client, key, in_words
        self._at = 0
        self._size: int | None = None
        self.closed = False

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}
        self._at = offset + (self.size() if whence == io.SEEK_END else base[whence])
        return self._at

    def size(self) -> int:
        if self._size is None:
            with self._in_words():
                self._size = int(self._client.head(self._key)["size"])
        return self._size

    def read(self, length: int = -1) -> bytes:
        """Return the next bytes: all if `length` is negative, fewer at the end."""
        if length < 0 or self._size is not None:
            rest = max(self.size() - self._at, 0)
            length = rest if length < 0 else min(length, rest)
        data = self._range(length) if length else b""
        self._at += len(data)
        return data

    def _range(self, length: int) -> bytes:
        try:
            with self._in_words():
                return bytes(self._client.get_range(self._key, start=self._at, length=length))
        except OSError:
            # Stores refuse a range that begins at the end, or beyond it, where a file has no bytes left.
            if self._size is None and self._at >= self.size():
                return b""
            raise

    def close(self) -> None:
        self.closed = True


class ObjectWriter:
    """A file that is written; the object appears when it is closed."""

    def __init__(self, client: Client, key: str, in_words: InWords) -> None:
        from obstore import open_writer  # noqa: PLC0415 - an extra

        self._in_words = in_words
        self._file = open_writer(client, key, buffer_size=_PART)
        self.closed = False

    def write(self, data: Any) -> int:
        content = memoryview(data).cast("B")
        with self._in_words():
            self._file.write(content)
        return content.nbytes

    def flush(self) -> None:
        """Do nothing: nobody may read the object before it is closed."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with self._in_words():
                self._file.close()
