"""The interface of a store: a folder of files, on a file system or in an object store, and the laws that it keeps.

    whole      a file that was written and closed is there with all its bytes; a file put in one piece is never seen in part
    read       a read after a write returns what was written last
    list       a file is listed as soon as it was written, and no longer after it was removed
    remove     a file that is missing is removed already; removing a folder removes all that is in it
    create     of all that create a file of one name with different contents, exactly one succeeds
    replace    a file is replaced only if it still is the one that was read; of all that replace it, exactly one succeeds

Every store keeps the first four. An object store also keeps the last two, and needs no folders, no rename, and no look
before a change: its conditional writes are in ObjectStore. A file system has renames instead (FileStore.move).
`tests/stores` checks all implementations with the same tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

Kind: TypeAlias = Literal["file", "folder"]


class ConflictError(Exception):
    """Another writer has created or changed the file since it was read."""


class Store(Protocol):
    """A folder; names may have slashes, and "" is the folder itself."""

    def path(self, name: str) -> str:
        """Return how messages name a file."""
        ...

    def make(self) -> None:
        """Create the folder and its parents, where the store has folders."""
        ...

    def listed(self, kind: Kind) -> list[str]:
        """Return the names of the files or of the folders directly in the folder, sorted; none if it is missing."""
        ...

    def has(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes:
        """Return the contents of a file; raise FileNotFoundError if it is missing."""
        ...

    def open_input(self, name: str) -> pa.NativeFile:
        """Open a file for random access."""
        ...

    def open_output(self, name: str) -> pa.NativeFile:
        """Open a file that is complete when it is closed, and that nobody may read before."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        ...

    def remove_folder(self, name: str) -> None:
        """Remove a folder with its contents; a missing folder is ignored."""
        ...

    def clear(self) -> None:
        """Remove the contents of the folder; a missing folder is ignored."""
        ...
