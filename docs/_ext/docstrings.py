"""Our docstrings in the markup of Sphinx: tables of arguments as lists of fields, code in backticks, names that are links."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from skypane.jobs.field_texts import rows

_CODE: Final = re.compile(r"(`+)([^`]+?)\1")
_NAME: Final = re.compile(
    r"(?<![\w.`])(?:sp\.(?P<of_sp>\w+)|(?P<name>\w+(?=\(|\.\w)|[A-Z][a-z]+[A-Z]\w*))(?P<member>(?:\.[a-z]\w*)?)(?:\(\))?"
)
_PAGE: Final = re.compile(r"(?<![\w/])docs/([\w/-]+)\.md")
_MARKUP: Final = re.compile(r"[\\*_|`]")


def markup(docstring: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText; mentions of public names, such as `ask()`, become links."""
    blocks = "\n".join(docstring).strip("\n").split("\n\n")
    return [line for block in blocks for line in (*_block(block.strip("\n").splitlines(), names), "")]


def _block(lines: list[str], names: Collection[str]) -> Iterator[str]:
    if not lines or lines[0].startswith(">>>"):
        yield from lines
        return
    if lines[0].startswith("    "):
        yield from (".. code-block:: text", "", *lines)
        return
    before, table = rows(lines)
    yield from _text(before, names)
    if before and table:
        yield ""
    for arguments, meaning in table:
        yield f":param {inline(arguments, ())}: {inline(meaning, names)}"


def _text(lines: list[str], names: Collection[str]) -> Iterator[str]:
    """Yield a paragraph; a list in it needs an empty line before and after."""
    inside = False
    for line in lines:
        item = line.lstrip().startswith("- ")
        if (item and not inside) or (inside and not line.startswith(" ")):
            yield ""
        inside = item or (inside and line.startswith(" "))
        yield inline(line, names)


def inline(text: str, names: Collection[str]) -> str:
    """Return a text with its code as literals, and its other characters as they are."""
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_with_pages(text[end : code.start()], names), f"\\ ``{code[2]}``\\ "]
        end = code.end()
    return "".join([*parts, _with_pages(text[end:], names)])


def _with_pages(text: str, names: Collection[str]) -> str:
    """Return a text with links to pages."""
    others = _PAGE.split(text)  # every second one is the name of a page
    return "".join(
        f"\\ :doc:`docs/{part}.md </{part}>`\\ " if number % 2 else _plain(part, names)
        for number, part in enumerate(others)
    )


def _plain(text: str, names: Collection[str]) -> str:
    parts: list[str] = []
    end = 0
    for found in _NAME.finditer(text):
        name = found["of_sp"] or found["name"]
        if name in names and (found["of_sp"] or not hasattr(builtins, name)):
            link = f"\\ :py:obj:`{found[0]} <skypane.{name}{found['member']}>`\\ "
            parts += [_MARKUP.sub(r"\\\g<0>", text[end : found.start()]), link]
            end = found.end()
    return "".join([*parts, _MARKUP.sub(r"\\\g<0>", text[end:])])
