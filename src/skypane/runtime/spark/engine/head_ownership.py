"""Ownership of a checkpoint in an object store: a claim and a commit are one conditional write of the head each.

A driver that starts replaces the name of the driver in the head, and with it the version that the previous driver knows.
Each change that a driver makes replaces the version that it has read or written last. So from the claim on every change
of the previous driver fails, however late it is sent, and it stops with a CheckpointError.

Files of partials are never replaced, and a file that a commit no longer needs is not needed by any later one. It can
therefore be deleted in place: a list of files that was made before a check that this driver is still in charge has none
of a later driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.checkpoint_head import HEAD, Head, first_head, read_head, refuse_earlier_versions
from skypane.runtime.spark.engine.owner import Owner
from skypane.runtime.spark.engine.ownership import OWNER, drivers_in, name_after
from skypane.runtime.stores.object_store import Stamp, same_version
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError

_TRIES: Final = 100


class HeadOwnership(Owner):
    """The right to change a checkpoint, held by knowing the last version of its head."""

    __slots__ = ("_head", "_root", "_stamp", "driver")

    def __init__(self, root: DocumentStore, head: Head, stamp: Stamp) -> None:
        self._root, self._head, self._stamp = root, head, stamp
        self.driver = head.driver

    @classmethod
    def take(cls, root: DocumentStore) -> Self:
        """Take ownership of the checkpoint, and fence the previous driver."""
        folders = root.child(OWNER)  # of drivers of versions of skypane without a head
        earlier = drivers_in(folders)
        for _ in range(_TRIES):
            found = read_head(root)
            head, known = (first_head(root), None) if found is None else found
            claim = Head(name_after([*earlier, *([head.driver] if head.driver else [])]), 0, head.documents)
            try:
                stamp = claim.write(root, known)
            except ConflictError:
                continue  # another driver was faster: take over from it
            refuse_earlier_versions(root)
            for driver in earlier:
                folders.remove_folder(driver)
            return cls(root, claim, stamp)
        raise CheckpointError(
            f"{root.root}: other drivers have taken over this checkpoint {_TRIES} times while this one tried to"
        )

    @property
    def place(self) -> str:
        return self._root.path(HEAD)

    def check(self) -> None:
        there = self._root.version(HEAD)
        if there is None or not same_version(there, self._stamp):
            raise self.lost()

    def write(self, target: DocumentStore, name: str, value: object) -> None:
        """Replace a document in the head; the document before it in the same folder becomes a file of its own first."""
        folder = target.root.removeprefix(self._root.root).lstrip("/")
        path = f"{folder}/{name}" if folder else name
        documents = {**self._head.documents, path: value}
        if folder:
            documents = self._without_earlier(documents, folder, path)
        head = Head(self.driver, self._head.change + 1, documents)
        try:
            self._stamp = head.write(self._root, self._stamp)
        except ConflictError as error:
            raise self.lost() from error
        self._head = head

    def _without_earlier(self, documents: Mapping[str, Any], folder: str, path: str) -> dict[str, Any]:
        """Write the other documents of a folder as files; what they hold is committed, so any driver writes the same."""
        earlier = [other for other in documents if other != path and other.rpartition("/")[0] == folder]
        for other in earlier:
            self._root.write_json(other, documents[other])
        return {key: document for key, document in documents.items() if key not in earlier}

    def remove(self, target: DocumentStore, names: Iterable[str]) -> None:
        if unneeded := list(names):
            self.check()
            target.remove(unneeded)
