"""The tables of docstrings: an argument or field by line, its meaning in a column to the right.

    name     meaning, which may have
             several lines
    a, b     meaning of two
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_ROW = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) {2,}(\S.*)")


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
