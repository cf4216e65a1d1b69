"""The meanings of fields: tables in docstrings, a field a line, and comments `#:` above fields.

name     meaning, which may have
         several lines
a, b     meaning of two
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_ROW = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) {2,}(\S.*)")

_FIELD = re.compile(r"\s+(\w+)\s*[:=]")


def field_texts(of: type[Any]) -> dict[str, str]:
    """Return the meaning of each documented field of a class, from its source and from those of its bases."""
    texts: dict[str, str] = {}
    for each in reversed(of.__mro__):
        texts |= argument_texts(inspect.cleandoc(each.__doc__ or ""))
        texts |= comments(each)
    return texts


@cache  # Python reads a module's source for each of its classes
def comments(of: type[Any]) -> dict[str, str]:
    """Return the comments `#:` above the fields of a class, without those of its bases."""
    try:
        lines = inspect.getsource(of).splitlines()
    except (OSError, TypeError):  # built in, or made by a call
        return {}
    found: dict[str, str] = {}
    above: list[str] = []
    for line in lines:
        if line.strip().startswith("#:"):
            above.append(line.strip().removeprefix("#:").strip())
            continue
        field = _FIELD.match(line)
        if above and field:
            found[field[1]] = " ".join(above)
        above = []
    return found


def argument_texts(docstring: str) -> dict[str, str]:
    r"""Return the meaning of each name in the tables of a docstring, as inspect.getdoc() returns it.

    >>> argument_texts("Return it.\n\na, b   two\n       numbers\nc      a text")
    {'a': 'two numbers', 'b': 'two numbers', 'c': 'a text'}
    """
    found = [row for block in docstring.split("\n\n") for row in rows(block.splitlines())[1]]
    return {name.strip("* "): meaning for names, meaning in found for name in names.split(",")}


def rows(lines: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines of a block before its table, and the table's rows; a table ends the block.

    It begins the block, or follows a line that ends with a colon.
    """
    for begin in range(len(lines)):
        if (begin == 0 or lines[begin - 1].endswith(":")) and (found := _table(lines[begin:])):
            return list(lines[:begin]), found
    return list(lines), []


def _table(lines: Sequence[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in lines:
        row = _ROW.fullmatch(line)
        if row:
            found.append((row[1], row[2]))
        elif found and line.startswith("   "):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            return []
    return found
