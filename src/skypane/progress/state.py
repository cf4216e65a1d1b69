"""The state that progress policies share, as a value that goes into the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from skypane.progress.far_future import HeldPanes
from skypane.progress.pauses import Pauses
from skypane.snapshots import ADDED, JsonState, fields_from_json, fields_to_json
from skypane.types import Micros


@dataclass(frozen=True)
class Progress(JsonState):
    """How far a stream has come; see ProgressState for the meaning of the first six."""

    punctuation: Micros | None = None
    newest: Micros | None = None
    slack: Micros = 0
    seen: int = 0
    dropped: int = 0
    held: HeldPanes = field(default_factory=HeldPanes)
    #: Rows that were held and given up, since the start.
    given_up: int = 0
    #: What a drain tells a pause from a wrong clock by.
    pauses: Pauses = field(default_factory=Pauses, metadata=ADDED)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON object, one entry per field."""
        return fields_to_json(self)

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the state whose snapshot() this is; raise CheckpointError, naming the field, if there is none."""
        return fields_from_json(cls, snapshot)
