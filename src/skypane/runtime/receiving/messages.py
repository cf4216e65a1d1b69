"""How what is not lines becomes lines: a message or a JSON value is one, its text as it was said.

A program as well, which is run for long answers (cutting.py): `python messages.py json` reads one and writes its lines. It
needs nothing but Python's own modules.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

_ENDS = bytes.maketrans(b"\r\n", b"  ")
_SPACE = re.compile(r"[ \t\r\n]*")


def line_of(message: bytes) -> bytes:
    """Return a message as one line, nothing for an empty one. Ends of lines within it become blanks, as JSON may have them."""
    text = message.strip(b"\r\n").translate(_ENDS)
    return text + b"\n" if text.strip() else b""


def lines_of(text: bytes) -> bytes:
    """Return the lines of a text that are not empty, each with its end."""
    return b"".join(line + b"\n" for line in text.split(b"\n") if line.strip())


def values_of(text: bytes) -> bytes:
    """Return a line for each value of a JSON list, one for another JSON value; what is no JSON as its lines.

    What it cannot be read as is told where it is read, with its place. So is what is nested more deeply than Python goes.
    """
    try:
        return b"".join(line_of(value.encode()) for value in _values(text.decode()))
    except (ValueError, RecursionError):
        return lines_of(text)


FORMS: Mapping[str, Callable[[bytes], bytes]] = {"json": values_of, "lines": lines_of}
"""How answers are written, and what makes lines of them."""

MEMORY = 2 << 30
"""Bytes of memory that a program that cuts an answer may have."""


def _values(text: str) -> Iterator[str]:
    """Yield the texts of the values; not what they mean, which for a number may have fewer digits."""
    read = json.JSONDecoder().raw_decode
    at = _after_space(text, 0)
    if not text.startswith("[", at):
        _, end = read(text, at)
        if _after_space(text, end) < len(text):
            raise ValueError("more than one value")
        yield text[at:end]
        return
    at = _after_space(text, at + 1)
    more = not text.startswith("]", at)
    while more:
        _, end = read(text, at)
        yield text[at:end]
        at = _after_space(text, end)
        more = text.startswith(",", at)
        at = _after_space(text, at + 1) if more else at
    if not text.startswith("]", at) or _after_space(text, at + 1) < len(text):
        raise ValueError("no list, or more than one value")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _limit_memory() -> None:
    import resource  # noqa: PLC0415 - where it is run as a program

    with suppress(ValueError, OSError):  # not every system has such limits
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    _limit_memory()
    sys.stdout.buffer.write(FORMS[sys.argv[1]](sys.stdin.buffer.read()))
