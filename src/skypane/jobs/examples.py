"""Job files that come with the package."""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from skypane.jobs.job_file import JobFile
from skypane.jobs.reading import parse, read
from skypane.naming import instead, nearest, shortened
from skypane.types import ConfigError

_FILES = (".yaml", ".yml")


def names() -> list[str]:
    """Return the names of the shipped examples."""
    return sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml"))


def text(name: str) -> str:
    """Return the text of the example `name`; raise ConfigError if there is none."""
    if name not in names():
        raise ConfigError(f"JOB {shortened(name)!r} is not an example; {instead(name, names())}")
    return _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def find(job: str, allowed: Collection[str] = ()) -> JobFile:
    """Return the job of the file `job`, or of the example of that name; `allowed` is as in read().

    Raise ConfigError, with the nearest name of a file beside it or of an example, if JOB is not a name of either.
    """
    path = Path(job)
    if job in names() and not path.is_file():  # a folder of that name holds the output of an example
        return parse(text(job), job, allowed)
    # Path.exists() raises for a name that no file can have.
    if not os.path.exists(path) and (near := nearest(job, [*_beside(path), *names()])):  # noqa: PTH110
        raise ConfigError(f"there is no job file {shortened(job)}, did you mean {near[0]!r}?")
    return read(path, allowed)


def _beside(path: Path) -> list[str]:
    """Return the job files in the folder of a path."""
    try:
        return [str(file) for file in sorted(path.parent.iterdir()) if file.suffix in _FILES]
    except (OSError, ValueError):  # there is no such folder, or it cannot be one
        return []


def _folder() -> Traversable:
    return resources.files("skypane").joinpath("examples")
