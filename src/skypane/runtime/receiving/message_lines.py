"""Turn messages and JSON values into lines, one line each, with their text unchanged.

This file is also a program for long responses (line_splitting.py): `python message_lines.py json` reads a response and
writes its lines. It imports only the standard library.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

_ENDS = bytes.maketrans(b"\r\n", b"  ")
_SPACE = re.compile(r"[ \t\r\n]*")


def line_of(message: bytes) -> bytes:
    """Return a message as one line, b"" for an empty one; line ends within it become blanks, which JSON permits."""
    text = message.strip(b"\r\n").translate(_ENDS)
    return text + b"\n" if text.strip() else b""


def lines_of(text: bytes) -> bytes:
    """Return the lines of a text that are not empty, each with a line end, without a byte order mark before the first."""
    return b"".join(line + b"\n" for line in text.removeprefix(codecs.BOM_UTF8).split(b"\n") if line.strip())


def values_of(text: bytes) -> bytes:
    """Return a line for each value of a JSON list, or one line for another JSON value.

    Invalid JSON, and JSON nested more deeply than Python's recursion limit, is returned as its lines; the query that
    reads them reports the error with its offset.
    """
    try:
        return b"".join(line_of(value.encode()) for value in _values(text.removeprefix(codecs.BOM_UTF8).decode()))
    except (ValueError, RecursionError):
        return lines_of(text)


FORMS: Mapping[str, Callable[[bytes], bytes]] = {"json": values_of, "lines": lines_of}
"""Formats of responses, and the functions that turn them into lines."""

MEMORY = 2 << 30
"""Memory limit in bytes of the process that splits a response."""


def _values(text: str) -> Iterator[str]:
    """Yield the texts of the values, because a parsed number may have fewer digits than its text."""
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
        raise ValueError("not a list, or more than one value")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _limit_memory() -> None:
    import resource  # noqa: PLC0415 - only needed when run as a program

    with suppress(ValueError, OSError):  # not every system has such limits
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    _limit_memory()
    sys.stdout.buffer.write(FORMS[sys.argv[1]](sys.stdin.buffer.read()))
