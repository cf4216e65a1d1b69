"""Folders of drivers, side by side: each start has one of its own, and takes those of the starts before it away.

A file of a shared folder comes out of a driver's own folder or goes into it before it is deleted. So a driver whose folder
was taken away neither adds a file, nor replaces or removes one, however long it slept: the move fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from skypane.runtime.spark.store import Store


def end(parent: Store, other: str, mine: Store) -> None:
    """Take a driver's folder away, at one stroke where the file system can: a file that is just written would hold it."""
    if not parent.is_local:
        parent.remove_folder(other)
        return
    with suppress(FileNotFoundError):  # another that starts now has taken it
        parent.move(other, mine, other)


def remove(names: Iterable[str], shared: Store, mine: Store) -> None:
    """Delete files of a shared folder; raise FileNotFoundError, with nothing changed, if the driver's own folder is gone.

    Files that are gone already are no error. An object store copies what it moves: there they are deleted where they are.
    """
    if not shared.is_local:
        shared.remove(names)
        return
    for name in names:
        try:
            shared.move(name, mine, name)
        except FileNotFoundError:
            if not mine.exists:
                raise
        else:
            mine.remove([name])
