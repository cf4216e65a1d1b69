"""Run the examples in the docstrings of the public names, in an empty folder, after those of docs/reference.md that they share."""

from __future__ import annotations

import doctest
import inspect
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.checkout import ROOT
from tests.page_steps import blocks

import skypane as sp

_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def shared() -> str:
    """Return the program that comes before each example."""
    (program,) = blocks(ROOT / "docs" / "reference.md", "python")
    return program


def examples() -> dict[str, doctest.DocTest]:
    """Return the examples of each public name; those of methods are run with their modules."""
    parser = doctest.DocTestParser()
    public = {name: getattr(sp, name) for name in dir(sp) if not name.startswith("_")}
    return {
        name: parser.get_doctest(inspect.getdoc(value) or "", {}, name, name, 0)
        for name, value in public.items()
        if callable(value)
    }


def main() -> int:
    """Print each example that gives something else than it shows; return their number."""
    names: dict[str, Any] = {}
    exec(shared(), names)  # noqa: S102 - a program of our own page
    kept = {path.name for path in Path().iterdir()}
    runner = doctest.DocTestRunner(verbose=False, optionflags=_OPTIONS)
    for test in examples().values():
        test.globs = dict(names)
        runner.run(test)
        for query in names["spark"].streams.active:
            query.stop()
        for path in Path().iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    tried = runner.summarize(verbose=False)
    print(f"{tried.attempted} examples")
    return tried.failed


if __name__ == "__main__":
    sys.exit(main())
