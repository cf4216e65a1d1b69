"""How names are written in errors and expressions: quoted, shortened, and with the nearest one that exists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any

#: characters of a user's text that an error repeats
_SHOWN = 200

#: all controls but line ends and tabs; marks of direction, embeddings and isolates; halves of characters
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def backticked(name: str) -> str:
    """Return a column's name in backticks, as Spark SQL and our own texts read it back.

    >>> backticked("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def nearest(name: str, names: Sequence[str], most: int = 1) -> list[str]:
    """Return up to `most` of `names` that are written much like `name`, in upper case or lower."""
    if len(name) > _SHOWN:
        return []  # comparing takes the product of both lengths, and no one mistypes a page
    by_lower = {known.lower(): known for known in names}
    return [by_lower[near] for near in get_close_matches(name.lower(), by_lower, n=most)]


def instead(name: str, names: Sequence[str], most: int = 1) -> str:
    """Return what to write for a `name` that is unknown: the nearest of `names`, or a list of them all.

    >>> instead("pric", ["price", "rating"])
    "did you mean 'price'?"
    >>> instead("colour", ["price", "rating"])
    'use one of price, rating'
    """
    near = nearest(name, names, most)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"use one of {', '.join(names)}"


def printable(text: str) -> str:
    r"""Return a text without what moves a terminal's cursor, colours it, or turns the order of letters: written as escapes.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str, most: int = _SHOWN) -> str:
    """Return `text`, or its beginning where it is longer than `most` characters: what an error may repeat of it, printable."""
    text = printable(text)
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def registered(registry: ModuleType) -> dict[str, Any]:
    """Return what a registry has, by name: a module of nothing but imports, one for each thing that there is.

    All that lists such things asks here: what else may bring some of them, such as other packages, belongs here too.
    """
    return {name: value for name, value in vars(registry).items() if not name.startswith("_")}
