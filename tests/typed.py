"""Types the blocks of a page into one Python, as a reader does: blocks come to stdin as JSON, and a list of their outputs goes to stdout.

A program by itself, which loads nothing that a reader's Python does not; readers.py also types in a fork of a warm one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import IO


def by_bash(code: str, output: IO[str]) -> int:
    """Run a block of commands, which write to a file; return its exit code."""
    return subprocess.run(["/bin/bash", "-euc", code], stdout=output, check=False).returncode


def main(run: Callable[[str, IO[str]], int] = by_bash) -> None:
    """Type what stdin has; Java, and all else that writes to the standard output itself, writes to stderr from now on."""
    blocks = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as outputs:
        os.dup2(2, 1)
        page = sys.modules["__main__"] = ModuleType("__main__")
        json.dump([_printed(kind, line, code, vars(page), run) for kind, line, code in blocks], outputs)


def _printed(kind: str, line: int, code: str, names: dict[str, object], run: Callable[[str, IO[str]], int]) -> str:
    if kind != "sh":
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile("\n" * (line - 1) + code, "the page", "exec"), names)  # noqa: S102 - a page of ours
        return output.getvalue()
    with tempfile.TemporaryFile("w+") as file:
        code_of_end = run(code, file)
        file.seek(0)
        printed = file.read()
    assert code_of_end == 0, f"line {line}: {printed}"
    return printed


if __name__ == "__main__":
    sys.path[0] = ""
    main()
