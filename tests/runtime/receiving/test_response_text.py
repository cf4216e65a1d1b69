"""The body of a response as its headers say: decoded, or refused with the reason."""

from __future__ import annotations

import gzip
import json
import zlib
from encodings.aliases import aliases

import pytest

from skypane.runtime.receiving.response_text import text_of

TEXT = '[{"v": 1, "n": "Zürich"}]'
LARGEST = 1 << 16


def packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def bare(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (TEXT.encode(), None), (TEXT.encode(), "identity"), (packed(TEXT.encode()), "gzip"), (packed(TEXT.encode()), "X-GZip"),
        (packed(TEXT[:5].encode()) + packed(TEXT[5:].encode()), "gzip"), (zlib.compress(TEXT.encode()), "deflate"),
        (bare(TEXT.encode()), "deflate"), (packed(zlib.compress(TEXT.encode())), "deflate, gzip"),
        (packed(TEXT.encode()), None),
    ],
)  # fmt: skip
def test_a_compressed_body_is_unpacked(body: bytes, coding: str | None):
    assert text_of(body, coding, None, LARGEST) == TEXT.encode()


@pytest.mark.parametrize("charset", sorted({*aliases.values()}))
def test_a_body_in_any_charset_of_python_is_the_same_text_or_refused(charset: str):
    try:
        body = TEXT.encode(charset)
    except (LookupError, UnicodeError):
        body = TEXT.encode()
    try:
        found = text_of(body, None, f"application/json; charset={charset.replace('_', '-')}", LARGEST)
    except ValueError as error:
        assert "its charset is" in str(error)  # noqa: PT017 - either may be right
    else:
        assert json.loads(found.decode()) == json.loads(body.decode(charset))


@pytest.mark.parametrize(
    ("body", "coding", "kind", "complaint"),
    [
        (b"x", "br", None, "Content-Encoding is 'br'"), (b"plain", "gzip", None, "cannot be decompressed"), (packed(b"x" * 99)[:-9], "gzip", None, "cut short"),
        (packed(bytes(LARGEST + 1)), "gzip", None, "longer than 65,536 bytes once"), (zlib.compress(b"x") + b"y", "deflate", None, "1 bytes follow"),
        (b"\xff", None, "text/plain; charset=us-ascii", "has other bytes"), (b"x", None, "text/plain; charset=klingon", "which is not known"),
        (b"x", None, "text/plain; charset=rot13", "which is not known"), (packed(b"") * 17, "gzip", None, "more than 16 members"),
        (b"x", "gzip," * 17, None, "compressed 18 times"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(body: bytes, coding: str | None, kind: str | None, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        text_of(body, coding, kind, LARGEST)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_mark_of_another_encoding_counts(encoding: str):
    assert text_of(TEXT.encode(encoding), None, "application/json", LARGEST) == TEXT.encode()
