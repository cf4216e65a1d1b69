"""What a stroke changes, what it goes by, and what a program may still change from where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Final, NamedTuple, TypeAlias

from tests.model.disk import Disk, Operation

Edges: TypeAlias = Mapping[tuple[int, int], int]
"""From where a program went to where, and a bit for each change that it has made on this way."""

_FOLDER: Final = {"names": 0, "remove_folder": 0, "rename": 1}
"""The argument of an operation that is a folder whose names it minds."""


class Change(NamedTuple):
    """A path of a disk that comes or goes, or whose file has another content afterwards."""

    path: str
    is_content: bool = False


def changes(before: Disk, after: Disk) -> set[Change]:
    """Return how two disks differ."""
    filled = (path for path in before.keys() & after.keys() if before[path] != after[path])
    return {*map(Change, before.keys() ^ after.keys()), *(Change(path, is_content=True) for path in filled)}


class Look(NamedTuple):
    """What a stroke goes by that leaves the disk as it is: while none of that changes, it gets the same answer, and changes nothing.

    paths    there or not
    folder   with the names that are right in it
    content  path of a file with what is in it
    """

    paths: frozenset[str]
    folder: str | None
    content: str | None

    def minds(self, change: Change) -> bool:
        if change.is_content:
            return change.path == self.content
        return change.path in self.paths or change.path.rpartition("/")[0] == self.folder


NOTHING: Final = Look(frozenset(), None, None)


def look(operation: Operation, disk: Disk) -> Look:
    """Return what an operation goes by that leaves this disk as it is."""
    name, arguments = operation.name, operation.arguments
    if name == "fill":  # of a file that is gone, which none can bring back
        return NOTHING
    paths = arguments[: 2 if name == "rename" else 1]
    folder = arguments[_FOLDER[name]] if name in _FOLDER else None
    return Look(_way(name, paths, disk), folder, paths[0] if name == "read" else None)


def _way(name: str, paths: tuple[str, ...], disk: Disk) -> frozenset[str]:
    """Return paths, and those above one that is not there: a file among them makes the error another."""
    missing = () if name == "kind" else (path for path in paths if path not in disk)
    above = (path[:at] for path in missing for at, letter in enumerate(path) if letter == "/")
    return frozenset((*paths, *above))


def ahead(edges: Edges) -> dict[int, int]:
    """Return a bit for each change that a program may still make, by where it stands.

    Raises CycleError if it can come back to where it was: another would then wait for it forever.
    """
    after: dict[int, list[int]] = {}
    for at, to in edges:
        after.setdefault(at, []).append(to)
    known: dict[int, int] = {}
    for at in TopologicalSorter(after).static_order():
        known[at] = 0
        for to in after.get(at, ()):
            known[at] |= edges[at, to] | known[to]
    return known
