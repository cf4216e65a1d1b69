"""One driver at a time: whoever starts on a checkpoint takes it over, and the one before can commit nothing more.

    <checkpoint>/skypane/owner/<driver>/   the folder of the driver in charge; its documents are written here

A driver that starts makes a folder of its own, whose name comes after all that it sees, then looks again: it moves the
folders of lower names into its own, and gives up its own for a higher name. Of any two, the one that has made its folder
later sees the other's, so one is left, whatever order they go in and whatever a listing misses that changes meanwhile.
Names come in the order of their charge, which sinks rely on, and none comes twice: a folder that is gone stays gone.

A document becomes true by moving out of the folder of its driver, and a file that nothing needs is deleted by moving into
it first: for a driver that has been taken over that folder is gone, so the move fails, however long the driver has slept. On
a file system that cannot move folders (object stores) the old folder is deleted, and the own one looked for before each
commit, which leaves a moment between the look and the commit.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from skypane.runtime.spark import folders
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

OWNER = "owner"
_TRIES = 100
_DRIVER = re.compile(r"(\d{12})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to change a checkpoint, as the folder `drafts`; `driver` names this start, after all that were before."""

    drafts: Store
    driver: str

    @classmethod
    def take(cls, root: Store) -> Self:
        """Take the checkpoint over from whoever has it."""
        owner = root.child(OWNER)
        owner.make()  # a folder that appears while pyarrow lists it is an error
        for _ in range(_TRIES):
            driver = _name_after(_drivers(owner))
            mine = owner.child(driver)
            mine.make()
            there = _drivers(owner)
            if max(there, default=driver) > driver:
                owner.remove_folder(driver)  # that one was faster: come after it, in name too
                continue
            for other in there:
                if other != driver:
                    folders.end(owner, other, mine)
            mine.clear()
            return cls(mine, driver)
        raise CheckpointError(
            f"{owner.root}: other drivers have taken this checkpoint {_TRIES} times while this one tried"
        )

    def check(self) -> None:
        """Raise CheckpointError if another driver has taken over."""
        if not self.drafts.exists:
            raise self.lost()

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Of a driver that was taken over meanwhile, every error is that: files it counted on are gone."""
        try:
            yield
        except Exception:
            self.check()
            raise

    def write(self, target: Store, name: str, value: object) -> None:
        """Replace a document of the checkpoint; raise CheckpointError, with nothing changed, if another driver has it."""
        self.check()  # what makes it sure is the move; a store that cannot move a folder away has this only
        try:
            target.write_json(name, value, drafts=self.drafts)
        except FileNotFoundError as error:
            raise self.lost() from error

    def remove(self, target: Store, names: Iterable[str]) -> None:
        """Delete files of the checkpoint, those that are there; raise CheckpointError if another driver has it."""
        self.check()
        try:
            folders.remove(names, target, self.drafts)
        except FileNotFoundError as error:
            raise self.lost() from error

    def lost(self) -> CheckpointError:
        return CheckpointError(
            f"another driver has started on the checkpoint of {self.drafts.root} and taken it over: this one stops, and "
            f"what it had not committed is that one's to do. Let one driver run at a time, or give each its own checkpoint"
        )


def _drivers(owner: Store) -> list[str]:
    return [name for name in owner.folders() if _DRIVER.fullmatch(name)]


def _name_after(drivers: list[str]) -> str:
    epoch = max((int(name.partition("-")[0]) for name in drivers), default=0) + 1
    return f"{epoch:012d}-{uuid.uuid4().hex[:8]}"
