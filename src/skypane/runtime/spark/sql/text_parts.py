"""The parts of a text in SQL between its commas."""

from __future__ import annotations

from collections.abc import Iterator


def parts(text: str) -> Iterator[str]:
    r"""Yield the parts between commas that are in no parentheses and no quotes; a backslash escapes a quote.

    >>> list(parts(r"count(*) AS n, count_if(shop == 'it\'s, so')"))
    ['count(*) AS n', "count_if(shop == 'it\\'s, so')"]
    """
    depth, begin, quote, escaped = 0, 0, "", False
    for at, letter in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = letter == "\\" and quote != "`"
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[begin:at].strip()
            begin = at + 1
    yield text[begin:].strip()
