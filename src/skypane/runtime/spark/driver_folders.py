"""The drivers' own folders: each driver that starts creates one, and removes those of earlier drivers.

Every file of a shared folder is moved there from a driver's own folder, and is moved into that folder before it is
deleted. A fenced driver has lost its folder, so every such move fails: it adds, replaces and removes no file, however
late it resumes.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from skypane.runtime.spark.document_store import DocumentStore


def end(parent: DocumentStore, other: str, mine: DocumentStore) -> None:
    """Remove another driver's folder; on a local disk with one move, as a file being written could stop a deletion."""
    if not parent.is_local:
        parent.remove_folder(other)
        return
    with suppress(FileNotFoundError):  # a third driver that starts now has removed it
        parent.move(other, mine, other)


def remove(names: Iterable[str], shared: DocumentStore, mine: DocumentStore) -> None:
    """Delete files of a shared folder; missing ones are ignored.

    Raises FileNotFoundError, with nothing changed, if the driver's own folder is missing. On a file system elsewhere
    (HDFS) the files are deleted in place.
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
