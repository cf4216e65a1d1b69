"""The figures by name: the `FIGURE` of the file paper1/figure_8.py is "paper1-figure-8"."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

from skypane.types import ConfigError
from skypane_papers.figure import Figure

PAPERS = {
    "paper1": "burst-tolerant preference queries over out-of-order streams",
    "paper2": "multiway aggregation of many inputs in one process",
    "paper3": "adaptive admission of many dynamic inputs",
    "paper4": "continuous skyline queries",
    "paper5": "elastic preference queries",
    "own": "questions of our own",
}


def names() -> list[str]:
    """Return the names of all figures, by ascending papers and numbers."""
    found = []
    for paper in PAPERS:
        package = import_module(f"{__package__}.{paper}")
        files = [module.name for module in iter_modules(package.__path__)]
        found += [f"{paper}-{file.replace('_', '-')}" for file in sorted(files, key=_number)]
    return found


def _number(file: str) -> tuple[tuple[int, ...], str]:
    return tuple(map(int, re.findall(r"\d+", file))), file


def figure(name: str) -> Figure:
    """Return the figure of that name; raise ConfigError if there is none."""
    known = names()
    if name not in known:
        raise ConfigError(f"unknown figure {name!r}; `skypane reproduce --list` lists {', '.join(known)}")
    paper, _, file = name.partition("-")
    found: Figure = import_module(f"{__package__}.{paper}.{file.replace('-', '_')}").FIGURE
    return found
