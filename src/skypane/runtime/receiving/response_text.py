"""The body of a response as text in UTF-8: decompressed and decoded as its headers say, or refused with the reason."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable
from email.message import Message
from typing import Final

GZIP: Final = b"\x1f\x8b"
"""How gzip begins, and no text does: also a file that a server hands out as it is."""

MARKS: Final = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
                 codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
"""Byte order marks of other encodings than UTF-8; of two that begin alike the longer one is first."""

_MOST: Final = 16
"""Members of a body in gzip, and codings of one, at most."""

_IN_GZIP, _IN_ZLIB, _BARE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


def text_of(body: bytes, coding: str | None, content_type: str | None, largest: int) -> bytes:
    """Return a body as text in UTF-8; raise ValueError if that cannot be.

    coding        the header Content-Encoding
    content_type  the header Content-Type, of which the charset counts
    largest       the largest text in bytes
    """
    codings = [one.strip().lower() for one in (coding or "").split(",")]
    if len(codings) > _MOST:
        raise ValueError(f"it is compressed {len(codings)} times; at most {_MOST} are read")
    for name in reversed(codings):
        if name in _CODINGS:
            body = _CODINGS[name](body, largest)
        elif name not in {"", "identity"}:
            raise ValueError(f"its Content-Encoding is {name!r}; only gzip and deflate are read, and none is requested")
    if body.startswith(GZIP):
        body = _unzipped(body, largest)
    about = Message()
    about["Content-Type"] = content_type or ""
    charset = about.get_content_charset() or next(
        (name for mark, name in MARKS.items() if body.startswith(mark)), "utf-8"
    )
    try:
        if codecs.lookup(charset).name == "utf-8":
            return body.removeprefix(codecs.BOM_UTF8)  # the query reports other bytes, with their offsets
        return body.decode(charset).encode()
    except LookupError:
        raise ValueError(f"its charset is {charset!r}, which is not known") from None
    except UnicodeError as error:
        raise ValueError(f"its charset is {charset!r}, but it has other bytes: {error}") from None


def _unzipped(body: bytes, largest: int) -> bytes:
    """Return what members of gzip hold, one after the other."""
    text, members = b"", 0
    while body:
        if members == _MOST:  # each copies what follows it
            raise ValueError(f"it has more than {_MOST} members of gzip")
        member, body = _unpacked(body, _IN_GZIP, largest - len(text))
        text, members = text + member, members + 1
    return text


def _inflated(body: bytes, largest: int) -> bytes:
    """Return what is deflated: in zlib's format, as the standard says, or bare, as some servers send it."""
    try:
        text, rest = _unpacked(body, _IN_ZLIB, largest)
    except ValueError:
        text, rest = _unpacked(body, _BARE, largest)
    if rest:
        raise ValueError(f"{len(rest):,} bytes follow what is compressed in it")
    return text


def _unpacked(body: bytes, form: int, largest: int) -> tuple[bytes, bytes]:
    """Return what the compressed bytes at the beginning hold, and the bytes after them."""
    unpack = zlib.decompressobj(form)
    try:
        text = unpack.decompress(body, largest + 1)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed: {error}") from None
    if len(text) > largest:
        raise ValueError(f"it is longer than {largest:,} bytes once it is decompressed")
    if not unpack.eof:
        raise ValueError("what is compressed in it is cut short")
    return text, unpack.unused_data


_CODINGS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _unzipped,
    "x-gzip": _unzipped,
    "deflate": _inflated,
}
