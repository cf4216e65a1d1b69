"""Conditions in SQL as the text that Condition reads: "n = 3 AND shop IS NOT NULL" is "n == 3 and shop is not None".

Comparisons, IN with constants, IS NULL, arithmetic, AND, OR and NOT have the same values in both, and the same precedence.
All else, such as LIKE, BETWEEN and functions, is left as it is, and Condition refuses it.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<comment>--)|(?P<text>'(?:[^'\\]|'')*'|"[^"\\]*")|(?P<quoted>`[^`]+`)|(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<mark><>|!=|<=|>=|==|[=<>+\-*/(),])"""
)
_WORDS: Final = {
    "AND": "and", "OR": "or", "NOT": "not", "IN": "in", "IS": "is", "NULL": "None", "TRUE": "True", "FALSE": "False",
}  # fmt: skip
_MARKS: Final = {"=": "==", "<>": "!="}


def in_python(sql: str) -> str | None:
    """Return a condition in the syntax of Condition; None if it has a part that this cannot have.

    >>> in_python("n = 3 AND (shop IS NOT NULL OR shop IN ('a'))")
    "n == 3 and ( shop is not None or shop in [ 'a' ] )"
    """
    words: list[str] = []
    closing: list[str] = []
    at = 0
    for token in _TOKEN.finditer(sql):
        if sql[at : token.start()].strip() or token.lastgroup == "comment" or token[0] == "None":
            return None
        at = token.end()
        word = _word(token)
        if word == "(":
            word = "[" if words[-1:] == ["in"] else "("
            closing.append("]" if word == "[" else ")")
        elif word == ")":
            word = closing.pop() if closing else word
        words.append(word)
    return None if sql[at:].strip() else " ".join(words)


def _word(token: re.Match[str]) -> str:
    found = token[0]
    match token.lastgroup:
        case "text":
            return repr(found[1:-1].replace(2 * found[0], found[0]))
        case "word":
            return _WORDS.get(found.upper(), found)
        case "mark":
            return _MARKS.get(found, found)
    return found
