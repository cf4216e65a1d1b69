"""Formats of compressed files: each is a sequence of members (gzip), frames (Zstandard) or streams (bzip2, xz)."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Protocol

from skypane.types import ConfigError

_LARGEST_DICTIONARY = 128 << 20
"""Bytes of memory that the decoder of one member may take; one that declares more is damaged."""
_SLICE = 1 << 10
"""Bytes that Zstandard's decoder receives at a time: it has no limit of its output, which is 32 MiB of these at most."""


class Decoder(Protocol):
    """Decodes one member; raises an error of `Compression.errors` if it is damaged."""

    @property
    def needs_input(self) -> bool:
        """Whether decompress() needs more bytes of the file: all text of those so far was returned."""

    @property
    def eof(self) -> bool:
        """Whether the member is complete, and its checksum is right."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of a complete member."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the next text, at most `max_length` bytes."""


class GzipDecoder:
    """A member of gzip."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._more = False

    @property
    def needs_input(self) -> bool:
        return not self._more

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        text = self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)
        # zlib may keep text when all bytes are consumed, but then it has returned as much as was allowed.
        self._more = not self.eof and (bool(self._decoder.unconsumed_tail) or len(text) == max_length)
        return text


class ZstdDecoder:
    """A frame of Zstandard."""

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 - an extra

        self._decoder = zstandard.ZstdDecompressor(max_window_size=_LARGEST_DICTIONARY).decompressobj()
        self._slice = 1  # a frame that is in one piece is checked otherwise than one in several
        self._data = b""
        self._text = memoryview(b"")

    @property
    def needs_input(self) -> bool:
        return not (self._data or self._text or self.eof)

    @property
    def eof(self) -> bool:
        return self._decoder.eof and not self._text

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data + self._data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._data += data
        while not self._text and self._data and not self._decoder.eof:
            piece, self._data, self._slice = self._data[: self._slice], self._data[self._slice :], _SLICE
            self._text = memoryview(self._decoder.decompress(piece))
        text, self._text = self._text[:max_length], self._text[max_length:]
        return bytes(text)


def _zstd_errors() -> tuple[type[Exception], ...]:
    import zstandard  # noqa: PLC0415 - an extra

    return (zstandard.ZstdError,)


@dataclass(frozen=True, slots=True)
class Compression:
    """A format.

    name     its name, as in pandas
    ending   the ending of names of such files
    starts   the first bytes of a member
    head     how many bytes `starts` matches
    member   what a member is called
    memory   returns about how many bytes of memory a decoder takes, by the first bytes of its member
    decoder  returns a decoder for one member
    errors   returns the errors of decoders
    """

    name: str
    ending: str
    starts: re.Pattern[bytes]
    head: int
    member: str
    memory: Callable[[bytes], int]
    decoder: Callable[[], Decoder]
    errors: Callable[[], tuple[type[Exception], ...]]


def _zstd_memory(head: bytes) -> int:
    import zstandard  # noqa: PLC0415 - an extra

    try:
        window = zstandard.get_frame_parameters(head).window_size
    except zstandard.ZstdError:
        window = 0
    return (1 << 20) + min(window, _LARGEST_DICTIONARY)


def _xz_memory(head: bytes) -> int:
    """Return the memory of the first block's dictionary, whose size is a byte of the block's last filter, LZMA2."""
    block = head[12 : 12 + 4 * (head[12] + 1)] if len(head) > 12 else b""
    at = block.rfind(b"\x21\x01") + 2
    size = block[at] & 63 if 2 <= at < len(block) else 0
    return (1 << 20) + min((2 | size & 1) << (size // 2 + 11), _LARGEST_DICTIONARY)


def _bzip2() -> Decoder:
    return bz2.BZ2Decompressor()


def _xz() -> Decoder:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_LARGEST_DICTIONARY)


FORMATS: Final[Mapping[str, Compression]] = {
    one.name: one
    for one in (
        Compression("gzip", ".gz", re.compile(rb"\x1f\x8b\x08[\x00-\x1f]", re.DOTALL), 4, "member", lambda _: 64 << 10,
                    GzipDecoder, lambda: (zlib.error,)),
        Compression("zstd", ".zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL), 4, "frame",
                    _zstd_memory, ZstdDecoder, _zstd_errors),
        Compression("bz2", ".bz2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)", re.DOTALL), 10, "stream",
                    lambda _: 4 << 20, _bzip2, lambda: (OSError, ValueError)),
        Compression("xz", ".xz", re.compile(rb"\xfd7zXZ\x00", re.DOTALL), 6, "stream", _xz_memory, _xz,
                    lambda: (lzma.LZMAError,)),
    )
}  # fmt: skip
"""The formats, by name."""
NONE: Final = "none"
"""The name of no compression, whatever the ending of a file's name is."""


def check_compression(name: str, where: str) -> None:
    """Raise ConfigError, naming `where`, for an unknown format, and for one whose package is not installed."""
    if name != NONE and name not in FORMATS:
        raise ConfigError(f"{where}: compression must be one of {', '.join([*FORMATS, NONE])}, got {name!r}")
    if name == "zstd" and find_spec("zstandard") is None:
        raise ConfigError(
            f"{where}: compression zstd needs the package zstandard, which is not installed: pip install 'skypane[zstd]'"
        )


def compression_of(path: str, given: str | None = None) -> Compression | None:
    """Return the format of a file, by its given name, else by the ending of the path; None if it is not compressed."""
    if given is not None:
        return FORMATS.get(given)
    return next((one for one in FORMATS.values() if path.lower().endswith(one.ending)), None)


def without_ending(path: str) -> str:
    """Return a path without the ending of a compressed file."""
    found = compression_of(path)
    return path[: -len(found.ending)] if found else path


def begins(form: Compression, head: bytes) -> bool:
    """Return whether bytes begin as a member does."""
    return form.starts.match(head) is not None
