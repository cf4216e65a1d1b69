"""Compressed files as other programs write them, for tests."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import Final

import zstandard

from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.unpacking import START, Mark, Unpacking

PACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "zstd": lambda text: zstandard.ZstdCompressor(write_checksum=True).compress(text),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
"""A whole member of each format."""


def unpacked(content: bytes, form: str, mark: Mark = START, size: int | None = None) -> tuple[bytes, dict[int, str]]:
    """Return all text of a file, and its damages."""
    unpacking = Unpacking(FORMATS[form], mark, size)
    text = b"".join(pieces(unpacking, content))
    assert unpacking.text == mark.text + len(text)
    return text, unpacking.damages


def pieces(unpacking: Unpacking, content: bytes) -> Iterator[bytes]:
    """Yield the text that a file has more than before, piece by piece."""
    with TemporaryFile() as file:
        file.write(content)
        file.flush()
        while piece := unpacking.piece(file):
            yield piece
