"""The parts of a start: which statements of a program belong to which part, and what each part took."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from measure.results.record import Times

PARTS: Final[Mapping[str, Sequence[str]]] = {
    "Python and imports": ("import ", "from ", '"""'),
    "session, with Java's start": ("spark =",),
    "the answer over a table": ("offers =", "sp.skyline(", "offers.groupBy("),
    "files, and the description of the stream": ("offers.write", "arriving =", "best =", "hours =", "job ="),
    "start of the stream": ("handle =",),
    "its first batch": ("handle.await",),
    "drain, and the answers read": ("handle.drain", "spark.read"),
}
"""The parts in their order, and how statements of each begin."""
FIRST_TABLE: Final = "the answer over a table"
FIRST_ANSWER: Final = "its first batch"
"""The parts with whose ends the first answer over a table, and over a stream, is there."""

_PYTHON: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM_SECTION: Final = "## In ten lines"


def program_of(readme: str) -> str:
    """Return the program of README: the blocks of its first section with Python."""
    _, _, rest = readme.partition(PROGRAM_SECTION)
    section = rest.partition("\n## ")[0]
    return "\n".join(_PYTHON.findall(section))


def part_of(statement: str) -> str:
    """Return the part to which a statement belongs; raise ValueError if it belongs to none."""
    for part, beginnings in PARTS.items():
        if statement.startswith(tuple(beginnings)):
            return part
    raise ValueError(f"no part of a start is known for {statement.splitlines()[0]!r}: add how it begins to PARTS")


def ends(steps: Iterable[tuple[str, float, float]]) -> dict[str, Times]:
    """Return when each part has ended, in seconds since the start, from statements with these."""
    return {part_of(statement): Times(wall, cpu) for statement, wall, cpu in steps}


def spans(ended: Mapping[str, Times]) -> dict[str, Times]:
    """Return what each part took, from when each has ended."""
    found, before = {}, Times(0.0, 0.0)
    for part, end in ended.items():
        found[part] = Times(end.wall - before.wall, (end.cpu or 0.0) - (before.cpu or 0.0))
        before = end
    return found
