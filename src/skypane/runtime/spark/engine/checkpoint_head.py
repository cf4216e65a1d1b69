"""The head of a checkpoint in an object store: one object that names the driver in charge and holds the committed state.

    <checkpoint>/skypane/head.json   {"driver": ..., "change": ..., "documents": {"definition.json": ..., ...}}

Each change of it is one conditional write, so changes come one after another, whatever the drivers do at the same time:
a claim replaces the driver's name and leaves the documents, a commit replaces documents. No two versions are equal,
because each has its driver's name and the number of its change.

The head has all documents of the folder itself. Versions of skypane without a head look for a file instead, and find one
of a format that they refuse.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.stores.object_store import Stamp
from skypane.types import CheckpointError

HEAD: Final = "head.json"
DEFINITION: Final = "definition.json"
DRAIN: Final = "drain.json"
ORDER: Final = "order.json"

_REFUSED: Final = {"format": 3, "name": "", "fixed": {}, "free": {}}
"""A definition of a format that no version without a head reads."""


@dataclass(frozen=True, slots=True)
class Head:
    """One version of the head.

    driver     name of the driver in charge
    change     number of its changes so far
    documents  the checkpoint's documents by path; of those in a folder, only the newest
    """

    driver: str
    change: int
    documents: Mapping[str, Any]

    def write(self, root: DocumentStore, known: Stamp | None) -> Stamp:
        """Replace the version `known`; raise ConflictError if another driver has changed the head since."""
        return root.write_version(HEAD, asdict(self), known)


def read_head(root: DocumentStore) -> tuple[Head, Stamp] | None:
    """Return the head and its version; None before the first start, or on a store without conditional writes."""
    if root.objects is None:
        return None
    try:
        value, stamp = root.read_version(HEAD)
        return Head(str(value["driver"]), int(value["change"]), {**value["documents"]}), stamp
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{root.path(HEAD)} is damaged ({error!r}): restore the whole checkpoint from a copy, or start with a new one"
        ) from error


def first_head(root: DocumentStore) -> Head:
    """Return what the first version of a head begins with: the documents that a version without a head has written."""
    documents: dict[str, Any] = {}
    for name in (DEFINITION, DRAIN):
        with suppress(FileNotFoundError):
            documents[name] = root.read_json(name)
    return Head("", 0, documents)


def refuse_earlier_versions(root: DocumentStore) -> None:
    """Let versions without a head refuse the checkpoint, whose newest manifest they would not find."""
    root.write_json(DEFINITION, _REFUSED)


def read_document(root: DocumentStore, path: str) -> Any:
    """Return a document of the checkpoint, from the head or from a file of its own, as read_json() does."""
    found = read_head(root)
    if found is None:
        document = root.read_json(path)
        if document != _REFUSED:
            return document
        found = read_head(root)  # another driver has created it since
    if found is None:
        raise CheckpointError(
            f"{root.path(HEAD)} is gone: restore the whole checkpoint from a copy, or start with a new one"
        )
    if path in found[0].documents:
        return found[0].documents[path]
    if "/" not in path:
        raise FileNotFoundError(errno.ENOENT, "there is no such document", root.path(path))
    return root.read_json(path)


def paths_in_head(root: DocumentStore) -> frozenset[str]:
    """Return the paths of the documents that the head holds."""
    found = read_head(root)
    return frozenset() if found is None else frozenset(found[0].documents)
