"""Ownership of a checkpoint on a file system: a driver that starts fences the previous one, which can commit nothing more.

    <checkpoint>/skypane/owner/<driver>/   the folder of the driver in charge; its documents are written here

A driver that starts creates its own folder, with a name after all names that it sees, and lists the folders again. It
moves folders with lower names into its own; if there is a higher name, it removes its own folder and tries again. Of
any two drivers, the one that creates its folder later sees the other's. Therefore exactly one remains, in any
interleaving and even if a listing misses a concurrent change. Names follow the order of ownership, on which sinks rely,
and are never reused, so a removed folder never reappears.

A document is committed by moving it out of its driver's folder, and an unneeded file is deleted by moving it there
first. A fenced driver has lost its folder, so these moves fail, however late it resumes. On file systems elsewhere
(HDFS) the old folder is deleted file by file, and a driver checks that its own exists before each commit; there, a
driver can be fenced between the check and the commit. Object stores have conditional writes instead (head_ownership.py).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.owner import Owner
from skypane.types import CheckpointError

OWNER = "owner"
_TRIES = 100
_DRIVER = re.compile(r"(\d{12})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Ownership(Owner):
    """The right to change a checkpoint, held by the folder `drafts` of this driver start.

    driver   name of this start, which sorts after those of all earlier ones
    """

    drafts: DocumentStore
    driver: str

    @classmethod
    def take(cls, root: DocumentStore) -> Self:
        """Take ownership of the checkpoint, and fence the previous driver."""
        owner = root.child(OWNER)
        owner.make()  # before it is listed: pyarrow raises if a folder appears while it is listed
        for _ in range(_TRIES):
            driver = name_after(drivers_in(owner))
            mine = owner.child(driver)
            mine.make()
            found = drivers_in(owner)
            if max(found, default=driver) > driver:
                owner.remove_folder(driver)  # another driver was faster: try again with a name after its name
                continue
            for other in found:
                if other != driver:
                    driver_folders.end(owner, other, mine)
            mine.clear()
            return cls(mine, driver)
        raise CheckpointError(
            f"{owner.root}: other drivers have taken over this checkpoint {_TRIES} times while this one tried to"
        )

    @property
    def place(self) -> str:
        return self.drafts.root

    def check(self) -> None:
        """Raise CheckpointError if this driver was fenced."""
        if not self.drafts.exists:
            raise self.lost()

    def write(self, target: DocumentStore, name: str, value: object) -> None:
        """Replace a document of the checkpoint; raise CheckpointError, with nothing changed, if fenced."""
        self.check()  # the move below is the real guard; a store that cannot move folders has only this check
        try:
            target.write_json(name, value, drafts=self.drafts)
        except FileNotFoundError as error:
            raise self.lost() from error

    def remove(self, target: DocumentStore, names: Iterable[str]) -> None:
        """Delete those files of the checkpoint that exist; raise CheckpointError if this driver was fenced."""
        self.check()
        try:
            driver_folders.remove(names, target, self.drafts)
        except FileNotFoundError as error:
            raise self.lost() from error


def drivers_in(owner: DocumentStore) -> list[str]:
    """Return the names of the drivers that have a folder."""
    return [name for name in owner.folders() if _DRIVER.fullmatch(name)]


def name_after(drivers: list[str]) -> str:
    """Return a new name that sorts after these."""
    epoch = max((int(name.partition("-")[0]) for name in drivers), default=0) + 1
    return f"{epoch:012d}-{uuid.uuid4().hex[:8]}"
