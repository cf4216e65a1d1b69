"""One driver at a time: whoever starts on a checkpoint takes it over, and the one before can commit nothing more.

    <checkpoint>/skypane/owner/<epoch>/   the folder of the driver in charge; its documents are written here

Taking over renames the folder to the next epoch, which only one of several can do, and empties it. A document becomes
true by moving out of the folder of the driver's own epoch: for a driver that has been taken over that folder is gone,
so the move fails, however long the driver has slept. On a file system without such renames (object stores) the folder
is looked for before each commit, which leaves a moment between the look and the commit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Self

from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError

OWNER = "owner"
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to change a checkpoint, as the folder `drafts`; `driver` names this start, here and in every copy."""

    drafts: Store
    epoch: int
    driver: str

    @classmethod
    def take(cls, root: Store) -> Self:
        """Take the checkpoint over from whoever has it."""
        owner = root.child(OWNER)
        owner.make()
        for _ in range(_TRIES):
            epoch = max((int(name) for name in owner.folders() if name.isdigit()), default=0)
            mine = owner.child(_folder(epoch + 1))
            try:
                if epoch:
                    owner.move(_folder(epoch), owner, _folder(epoch + 1))
                else:
                    mine.make_first()
            except (FileNotFoundError, FileExistsError):
                continue  # another driver was faster: take over from that one
            mine.remove(mine.names())
            return cls(mine, epoch + 1, f"{epoch + 1:06d}-{uuid.uuid4().hex[:8]}")
        raise CheckpointError(
            f"{owner.root}: other drivers have taken this checkpoint {_TRIES} times while this one tried"
        )

    def check(self) -> None:
        """Raise CheckpointError if another driver has taken over."""
        if not self.drafts.exists:
            raise self.lost()

    def write(self, target: Store, name: str, value: object) -> None:
        """Replace a document of the checkpoint; raise CheckpointError, with nothing changed, if another driver has it."""
        self.check()  # what makes it sure is the move; a store that cannot move a folder away has this only
        try:
            target.write_json(name, value, drafts=self.drafts)
        except FileNotFoundError as error:
            raise self.lost() from error

    def lost(self) -> CheckpointError:
        return CheckpointError(
            f"another driver has started on the checkpoint of {self.drafts.root} and taken it over: this one stops, and "
            f"what it had not committed is that one's to do. Let one driver run at a time, or give each its own checkpoint"
        )


def _folder(epoch: int) -> str:
    return f"{epoch:012d}"
