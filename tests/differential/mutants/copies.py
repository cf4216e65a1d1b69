"""Copies of the sources, each with one mutant; what has been compiled of all else is copied with them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.differential.mutants.mutant import Mutant

PACKAGE = "skypane"


def copy(sources: Path, target: Path) -> None:
    """Copy a tree of sources, times of files with it: by these Python and Numba know what they have compiled."""
    shutil.copytree(sources, target)


def mutate(sources: Path, mutant: Mutant) -> None:
    """Put a mutant into a copy, and remove what was compiled of what it changes."""
    path = sources / PACKAGE / mutant.file
    before, stat = path.read_text(), path.stat()
    after = mutant.applied(before)
    if path.parent.name == "kernels":
        # Numba's cache holds while all files of the kernels have the times and sizes that they had.
        path.write_text(_of_size(after, len(before.encode())))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        path.write_text(after)
    for compiled in _compiled(path):
        compiled.unlink()


def _of_size(source: str, size: int) -> str:
    """Return a module of so many bytes: with blanks at its end, or with a shorter docstring on its first line."""
    missing = size - len(source.encode())
    return source + " " * missing if missing >= 0 else source[:3] + source[3 - missing :]


def _compiled(path: Path) -> Iterator[Path]:
    """Yield what was compiled of a module, and of the kernels that may hold code of it."""
    cache = path.parent / "__pycache__"
    yield from cache.glob(f"{path.stem}.*.pyc")
    if path.parent.name == "kernels":
        for module in sorted(_users(path)):
            yield from cache.glob(f"{module}.*.nb?")


def _users(path: Path) -> set[str]:
    """Return the modules of the kernels that import this one, or one that does, and itself."""
    imports = {
        other.stem: set(re.findall(r"^from skypane\.kernels\.(\w+) import", other.read_text(), re.MULTILINE))
        for other in path.parent.glob("*.py")
    }
    users = {path.stem}
    while more := {module for module, used in imports.items() if used & users} - users:
        users |= more
    return users
