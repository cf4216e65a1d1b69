"""Job files that come with the package."""

from __future__ import annotations

from collections.abc import Collection
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from skypane.jobs.job_file import JobFile
from skypane.jobs.reading import parse, read
from skypane.types import ConfigError


def names() -> list[str]:
    """Return the names of the shipped examples."""
    return sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml"))


def text(name: str) -> str:
    """Return the text of the example `name`; raise ConfigError if there is none."""
    if name not in names():
        raise ConfigError(f"JOB {name!r} is not an example; the examples are {', '.join(names())}")
    return _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def find(job: str, allowed: Collection[str] = ()) -> JobFile:
    """Return the job of the file `job`, or of the example of that name; `allowed` is as in read()."""
    if job in names() and not Path(job).is_file():  # a folder of that name holds the output of an example
        return parse(text(job), job, allowed)
    return read(Path(job), allowed)


def _folder() -> Traversable:
    return resources.files("skypane").joinpath("examples")
