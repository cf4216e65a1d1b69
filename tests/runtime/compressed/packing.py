"""Compressed files as other programs write them, for tests."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import zstandard

from skypane.runtime.compressed.formats import FORMATS, Compression
from skypane.runtime.compressed.unpacking import START, Mark, Unpacking

PACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "zstd": lambda text: zstandard.ZstdCompressor(write_checksum=True).compress(text),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
"""A whole member of each format."""


def unpacked(path: Path, form: Compression | str, mark: Mark = START) -> tuple[bytes, dict[int, str]]:
    """Return all text of a file, and its damages."""
    unpacking = Unpacking(FORMATS[form] if isinstance(form, str) else form, mark)
    with path.open("rb") as file:
        text = b"".join(iter(lambda: unpacking.piece(file), b""))
    assert unpacking.text == mark.text + len(text)
    return text, unpacking.damages
