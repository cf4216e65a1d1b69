"""Names in errors and expressions: quoted, shortened, and with suggestions for unknown ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

#: Characters of a user's text that an error quotes.
_SHOWN = 200

#: Control characters except line feed and tab; direction marks, embeddings and isolates; surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def backticked(name: str) -> str:
    """Return a column name in backticks, as Spark SQL and skypane's own texts parse it.

    >>> backticked("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def nearest(name: str, names: Sequence[str], most: int = 1) -> list[str]:
    """Return up to `most` of `names` that are spelled like `name`, ignoring case."""
    if len(name) > _SHOWN:
        return []  # comparing takes time proportional to the product of both lengths
    by_lower = {known.lower(): known for known in names}
    return [by_lower[near] for near in get_close_matches(name.lower(), by_lower, n=most)]


def instead(name: str, names: Sequence[str], most: int = 1) -> str:
    """Return a suggestion for an unknown `name`: the nearest of `names`, or the list of all.

    >>> instead("pric", ["price", "rating"])
    "did you mean 'price'?"
    >>> instead("colour", ["price", "rating"])
    'use one of price, rating'
    """
    near = nearest(name, names, most)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"use one of {', '.join(names)}"


def printable(text: str) -> str:
    r"""Return a text with control and direction characters, which could change a terminal's output, written as escapes.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str, most: int = _SHOWN) -> str:
    """Return `text` in printable form, cut after `most` characters, for quoting in an error."""
    text = printable(text)
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def snake_case(name: str) -> str:
    """Return a class name in snake case, as in job files.

    >>> snake_case("TopK"), snake_case("KDominant")
    ('top_k', 'k_dominant')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
