"""The prose of the project, without the code in it: pages, docstrings, comments, messages, and names of tests as words."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.checkout import ROOT

PAGES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "papers/README.md", "docs/**/*.md")
MODULES: Final = ("src/**/*.py", "papers/src/**/*.py", "docs/**/*.py")
TESTS: Final = ("tests/**/*.py",)
EXCEPT: Final = ("tests/prose/", "tests/test_prose.py")
"""The rules, with their examples."""

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"``[^`]+``|`[^`\n]+`|\]\([^()\s]+\)|<!--.*?-->")
_DOCTEST = re.compile(r"^ *(?:>>>|\.\.\.) .*$", re.MULTILINE)
_SENTENCE = re.compile(r"[A-Za-z]{2,}[^A-Za-z]*\s[^A-Za-z]*[A-Za-z]{2,}")


class Text(NamedTuple):
    """Prose of a file: its first line, and its lines as they are, with code replaced by as many backticks."""

    file: str
    line: int
    text: str
    #: whether it is the name of a test
    is_name: bool = False


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Yield all prose under a folder."""
    for file in _files(root, PAGES):
        yield Text(file, 1, prose(_blank(_FENCE, (root / file).read_text(encoding="utf-8"))))
    for file in _files(root, MODULES):
        yield from of_module(file, (root / file).read_text(encoding="utf-8"))
    for file in _files(root, TESTS):
        if not file.startswith(EXCEPT):
            yield from of_tests(file, (root / file).read_text(encoding="utf-8"))


def of_module(file: str, source: str) -> Iterator[Text]:
    """Yield the docstrings, the messages and the comments of a module."""
    yield from (Text(file, line, prose(text)) for line, text in (*_strings(source), *_comments(source)))


def of_tests(file: str, source: str) -> Iterator[Text]:
    """Yield the docstrings and comments of a module of tests, and its tests' names as words.

    The name `test_a_full_disk_is_refused` is "a full disk is refused".
    """
    nodes = list(ast.walk(ast.parse(source)))
    for line, text in (*_docstrings(nodes), *_comments(source)):
        yield Text(file, line, prose(text))
    for each in nodes:
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
            yield Text(file, each.lineno, each.name.removeprefix("test_").replace("_", " "), is_name=True)


def prose(text: str) -> str:
    """Return the text with the same lines, and with backticks in place of code, doctests and addresses."""
    return _blank(_DOCTEST, _blank(_CODE, text))


def _files(root: Path, patterns: Iterable[str]) -> list[str]:
    return sorted({path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)})


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", "`", found.group()), text)


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the strings that stand alone: each describes what it is in, or the name before it."""
    for each in nodes:
        match each:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield each.lineno, text


def _strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of two words or more; the values in an f-string are empty code."""
    tree = ast.parse(source)
    parts = {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in ast.walk(tree):
        match each:
            case ast.JoinedStr(values=values):
                text = "".join(part.value if isinstance(part, ast.Constant) else "``" for part in values)  # type: ignore[misc]
            case ast.Constant(value=str(text)) if id(each) not in parts:
                pass
            case _:
                continue
        if _SENTENCE.search(text):
            yield each.lineno, text


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments; those on successive lines of their own are one text."""
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, column), text = token.start, token.string.lstrip("#: ")
        alone = not token.line[:column].strip()
        if block and not (alone and line == last + 1):
            yield start, "\n".join(block)
            block = []
        start = start if block else line
        block.append(text)
        last = line if alone else 0
    if block:
        yield start, "\n".join(block)
