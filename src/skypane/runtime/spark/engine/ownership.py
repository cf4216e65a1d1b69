"""Ownership of a checkpoint: a driver that starts fences the previous one, which can commit nothing more.

    <checkpoint>/skypane/owner/<driver>/   the folder of the driver in charge; its documents are written here

A driver that starts creates its own folder, with a name after all names that it sees, and lists the folders again. It
moves folders with lower names into its own; if there is a higher name, it removes its own folder and tries again. Of
any two drivers, the one that creates its folder later sees the other's. Therefore exactly one remains, in any
interleaving and even if a listing misses a concurrent change. Names follow the order of ownership, on which sinks rely,
and are never reused, so a removed folder never reappears.

A document is committed by moving it out of its driver's folder, and an unneeded file is deleted by moving it there
first. A fenced driver has lost its folder, so these moves fail, however late it resumes. On file systems that cannot
move folders (object stores) the old folder is deleted, and a driver checks that its own exists before each commit;
there, a driver can be fenced between the check and the commit.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from skypane.runtime.spark import driver_folders
from skypane.runtime.spark.document_store import DocumentStore
from skypane.types import CheckpointError

OWNER = "owner"
_TRIES = 100
_DRIVER = re.compile(r"(\d{12})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Ownership:
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
            driver = _name_after(_drivers(owner))
            mine = owner.child(driver)
            mine.make()
            found = _drivers(owner)
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

    def check(self) -> None:
        """Raise CheckpointError if this driver was fenced."""
        if not self.drafts.exists:
            raise self.lost()

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Replace any error inside the context by a CheckpointError if this driver was fenced: its files are gone."""
        try:
            yield
        except Exception:
            self.check()
            raise

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

    def lost(self) -> CheckpointError:
        return CheckpointError(
            f"another driver has started on the checkpoint of {self.drafts.root} and taken it over: this one stops, "
            f"and the other one repeats its uncommitted work. Run one driver at a time, or give each its own checkpoint"
        )


def _drivers(owner: DocumentStore) -> list[str]:
    return [name for name in owner.folders() if _DRIVER.fullmatch(name)]


def _name_after(drivers: list[str]) -> str:
    epoch = max((int(name.partition("-")[0]) for name in drivers), default=0) + 1
    return f"{epoch:012d}-{uuid.uuid4().hex[:8]}"
