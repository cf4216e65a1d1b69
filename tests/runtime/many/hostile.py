"""Bytes that a stranger may send: a small corpus, and mutations of it, the same for the same seed."""

from __future__ import annotations

import random

CORPUS: dict[str, tuple[bytes, ...]] = {
    "json": (
        b'{"n":1,"p":2.5,"t":"2026-01-01T00:00:00Z","s":"a"}\n{"n":2,"p":-1e-3}\n',
        b'{"n":1,"x":{"a":[1,{"b":null}]},"s":"}{"}\r\n{"s":"\\u00e9\\n\\""}\n\n',
        b'{"o":{"a":1},"l":[1,null,2],"b":true,"d":"2026-01-01"}\n{"o":null,"l":[],"b":null,"d":null}\n',
        b'{"x":[\n{"n":2}\n]}\n{"n":3}\n',
        b'null\n{"n":1}\n[]\n"x"\n7\ntrue\n',
        b'{"n":1}{"n":2}\n{"n":1,"n":2}\n{"n":99999999999999999999}\n{"n":1.5}\n{"p":NaN}\n{"p":1e999}\n',
        b'\xef\xbb\xbf{"n":1}\n{"s":"\xff"}\n{"s":"\\ud800"}\n{"s":"\x00"}\n',
    ),
    "csv": (
        b'1,2.5,2026-01-01T00:00:00Z,a\n2,,,"b,c"\n',
        b'1,"2","2026-01-01T00:00:00Z","a ""b"""\r\n\n3,4,,\n',
        b'1,2,,"a\n2,2,,b"\n3,3,,"c\n',
        b"1,2,,a\r2,2,,b\n\xef\xbb\xbf3,3,,c\nx,y,z,w\n1,2\n1,2,3,4,5\n",
    ),
    "http": (b'[{"n": 1}, {"n": [1, 2]}, "x\\n", null]', b'{"n":1}\n{"n":2}\n', b"[[[1]]]", b"[1,", b"  [ ] "),
}

_TOKENS = (
    b"null", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\\", b"\\u", b"\x00",
    b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x1b[31m", b"NaN", b"Infinity", b"-", b"1e400", b"9" * 40, b"{}", b"[]",
    b'{"n":', b'"n"', b'""', b"true", b"/*", b"2026-13-45", b"0001-01-01", b"}\n{", b'"}\n{"',
)  # fmt: skip


def mutated(kind: str, chance: random.Random) -> bytes:
    """Return something that once was a text of the corpus."""
    text = bytearray(chance.choice(CORPUS[kind]))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 9))):
        _mutate(text, kind, chance)
    return bytes(text)


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Return a file's content with some bits the other way, or without its end."""
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        if damaged:
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged[: chance.randrange(len(damaged) + 1)] if chance.random() < 0.2 else damaged)


def _mutate(text: bytearray, kind: str, chance: random.Random) -> None:
    begin = chance.randrange(len(text) + 1)
    end = min(len(text), begin + chance.choice((0, 1, 3, 20)))
    match chance.randrange(6):
        case 0 if text:
            text[begin - 1] ^= 1 << chance.randrange(8)
        case 1:
            del text[begin:end]
        case 2:
            text[begin:begin] = text[begin:end] * chance.choice((1, 2, 50))
        case 3:
            text[begin:end] = chance.choice(_TOKENS)
        case 4:
            text[begin:begin] = chance.choice(_TOKENS) * chance.choice((1, 1, 1, 2, 3000))
        case _:
            text[begin:begin] = chance.choice(CORPUS[kind])
