"""The steps of a page: its blocks of code, which are run in order, and the output that the page shows below each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from tests.checkout import ROOT

TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))
GUIDES = sorted((ROOT / "docs").glob("how-to-*.md"))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\S+)\n")
_MODULE = re.compile(r"# (\w+\.py)\n")
_WIDTH = "100"
"""Columns of the terminal for which the outputs of commands are shown."""

_TYPED = Path(__file__).with_name("typed.py")


class Step(NamedTuple):
    """A block of a page that a reader types, its first line in the page, and the output that the page shows for it."""

    kind: str
    line: int
    code: str
    shown: str


def steps(page: str) -> list[Step]:
    """Return what a page lets its reader type, except for what installs; each `text` block is the output of the block before it.

    A program that begins with the name of its file, as a comment, is saved, not typed.
    """
    found: list[Step] = []
    for block in _BLOCK.finditer(page):
        kind, body = block.groups()
        line = page.count("\n", 0, block.start()) + 2
        if kind == "text":
            assert found, f"line {line}: an output before the first block that is run"
            assert not found[-1].shown, f"line {line}: a second output of one block"
            found[-1] = found[-1]._replace(shown=body)
        elif kind in {"python", "sh"} and "pip install" not in body and not _MODULE.match(body):
            found.append(Step(kind, line, body, ""))
    return found


def files(page: str) -> dict[str, str]:
    """Return the files that a page lets its reader save: yaml blocks, and programs that do, begin with the name of the file as a comment."""
    bodies = [
        body for kind, body in _BLOCK.findall(page) if kind == "yaml" or (kind == "python" and _MODULE.match(body))
    ]
    names = [_FILE.match(body) for body in bodies]
    assert all(names), "a yaml block does not begin with the name of its file"
    return {name[1]: body for name, body in zip(names, bodies, strict=True) if name}


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a file that are of a language."""
    return [body for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def kinds_of_blocks(page: Path) -> set[str]:
    return {kind for kind, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))}


def programs(page: str) -> list[str]:
    """Return the programs of a page, saved or typed."""
    return [body for kind, body in _BLOCK.findall(page) if kind == "python"]


def as_a_stranger(typed: list[Step], folder: Path) -> list[str]:
    """Return what each block prints that is typed in a folder into a new Python, which starts a Java of its own."""
    done = subprocess.run(
        [sys.executable, _TYPED],
        cwd=folder, env=activated(), input=json.dumps([step[:3] for step in typed]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    printed: list[str] = json.loads(done.stdout)
    return printed


def differences(page: str, folder: Path, typed: Callable[[list[Step], Path], list[str]] = as_a_stranger) -> list[str]:
    """Have the steps of a page typed in a folder, with its files there; return how each output differs from what the page shows."""
    for name, body in files(page).items():
        (folder / name).write_text(body, encoding="utf-8")
    expected = steps(page)
    different = [difference(*each) for each in zip(expected, typed(expected, folder), strict=True)]
    return [one for one in different if one]


def difference(step: Step, printed: str) -> str:
    """Return how an output differs from what the page shows; nothing if it does not."""
    lines = bare(printed)
    if re.fullmatch(pattern(step.shown), "".join(f"{line}\n" for line in lines)):
        return ""
    compared = unified_diff(bare(step.shown), lines, "the page", "this run", lineterm="")
    return "\n".join([f"line {step.line}:", *compared])


def pattern(shown: str) -> str:
    """Return a regular expression for an output: `...` is any text within a line, or any lines if nothing else is in its line."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in bare(shown)
    ]
    return "".join(lines)


def bare(output: str) -> list[str]:
    """Return the lines of an output without the space at their ends, and without empty lines."""
    return [line.rstrip() for line in output.splitlines() if line.strip()]


def activated() -> dict[str, str]:
    """Return the variables of a terminal of a known width in which the environment of this Python is active.

    Java has its own settings, as a reader's: those of tests are for a shorter life (tests/java.py).
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    return {**inherited, "PATH": path, "COLUMNS": _WIDTH}
