"""A disk as a value: folders and files of a path each, and what an operation makes of it (POSIX, as far as a Store goes).

One operation happens at one stroke. What an operating system does in several, listing a folder and deleting a tree, is several
here (gate.py), so that anything may happen in between.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Open:
    """A file that `writer` has open: nothing is in it yet."""

    writer: str


Content: TypeAlias = bytes | Open | None
"""States of a file, of one that is being written, of a folder."""
Disk: TypeAlias = Mapping[str, Content]
EMPTY: Final[Disk] = {"": None}


@dataclass(frozen=True, slots=True)
class Failed:
    """What an operation raises, as a value."""

    code: int
    path: str

    def error(self) -> OSError:
        return OSError(self.code, "the model says so", self.path)


@dataclass(frozen=True, slots=True)
class Operation:
    """One stroke: the name of a function of this file, and its arguments after the disk."""

    name: str
    arguments: tuple[Any, ...]

    def on(self, disk: Disk) -> tuple[Disk, Any]:
        """Return the disk afterwards, and what the caller receives."""
        try:
            return _OPERATIONS[self.name](disk, *self.arguments)
        except OSError as error:
            return disk, Failed(error.errno or 0, str(error.filename))


def kind(disk: Disk, path: str) -> tuple[Disk, str | None]:
    """Return what is there: "file", "folder" or None."""
    return disk, _kind(disk, path)


def names(disk: Disk, path: str) -> tuple[Disk, frozenset[tuple[str, str | None]]]:
    """Return names and kinds of what is right in a folder."""
    _need_folder(disk, path)
    inside = (there for there in disk if there and _parent(there) == path)
    return disk, frozenset((there.rpartition("/")[2], _kind(disk, there)) for there in inside)


def make(disk: Disk, path: str) -> tuple[Disk, None]:
    """Create a folder, with its parents."""
    parents = [path[:at] for at, letter in enumerate(path) if letter == "/"] + [path]
    for folder in parents:
        if _kind(disk, folder) == "file":
            raise OSError(errno.EEXIST if folder == path else errno.ENOTDIR, "", folder)
    return {**dict.fromkeys(parents), **disk}, None


def unlink(disk: Disk, path: str) -> tuple[Disk, None]:
    _need(disk, path)
    if disk[path] is None:
        raise OSError(errno.EISDIR, "", path)
    return {there: content for there, content in disk.items() if there != path}, None


def remove_folder(disk: Disk, path: str) -> tuple[Disk, None]:
    _need_folder(disk, path)
    _need_empty(disk, path)
    return {there: content for there, content in disk.items() if there != path}, None


def rename(disk: Disk, path: str, target: str) -> tuple[Disk, None]:
    """Move a file, or a folder with all that is in it."""
    for folder in (_parent(path), _parent(target)):  # in the order in which the system walks them
        _need_folder(disk, folder)
    _need(disk, path)
    if disk[path] is not None and _kind(disk, target) == "folder":
        raise OSError(errno.EISDIR, "", target)
    if disk[path] is None and f"{target}/".startswith(f"{path}/") and target != path:
        raise OSError(errno.EINVAL, "", path)
    if disk[path] is None and target in disk and target != path:
        _need_folder(disk, target)
        _need_empty(disk, target)
    moved = {there: content for there, content in disk.items() if there == path or there.startswith(f"{path}/")}
    rest = {there: content for there, content in disk.items() if there not in moved}
    return {**rest, **{target + there[len(path) :]: content for there, content in moved.items()}}, None


def create(disk: Disk, path: str, writer: str) -> tuple[Disk, None]:
    """Open a file for writing: it is there, and empty."""
    _need_folder(disk, _parent(path))
    if _kind(disk, path) == "folder":
        raise OSError(errno.EISDIR, "", path)
    return {**disk, path: Open(writer)}, None


def fill(disk: Disk, writer: str, content: bytes) -> tuple[Disk, None]:
    """Write what was opened, wherever it lies by now, or whether it is gone."""
    return {there: content if known == Open(writer) else known for there, known in disk.items()}, None


def read(disk: Disk, path: str) -> tuple[Disk, bytes]:
    _need(disk, path)
    content = disk[path]
    if content is None:
        raise OSError(errno.EISDIR, "", path)
    return disk, content if isinstance(content, bytes) else b""


_OPERATIONS: dict[str, Callable[..., tuple[Disk, Any]]] = {
    operation.__name__: operation
    for operation in (kind, names, make, unlink, remove_folder, rename, create, fill, read)
}


def _kind(disk: Disk, path: str) -> str | None:
    if path not in disk:
        return None
    return "folder" if disk[path] is None else "file"


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _need(disk: Disk, path: str) -> None:
    if path not in disk:
        raise OSError(errno.ENOTDIR if _is_through_a_file(disk, path) else errno.ENOENT, "", path)


def _need_folder(disk: Disk, path: str) -> None:
    _need(disk, path)
    if disk[path] is not None:
        raise OSError(errno.ENOTDIR, "", path)


def _need_empty(disk: Disk, path: str) -> None:
    if any(there.startswith(f"{path}/") for there in disk):
        raise OSError(errno.ENOTEMPTY, "", path)


def _is_through_a_file(disk: Disk, path: str) -> bool:
    return any(disk.get(path[:at]) is not None for at, letter in enumerate(path) if letter == "/")
