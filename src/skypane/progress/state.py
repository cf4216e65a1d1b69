"""State that all progress policies share, as a value that is written to the ledger."""

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
    """Progress of a stream; ProgressState describes the first six fields."""

    punctuation: Micros | None = None
    newest: Micros | None = None
    slack: Micros = 0
    seen: int = 0
    dropped: int = 0
    held: HeldPanes = field(default_factory=HeldPanes)
    #: Held rows that were quarantined since the start.
    given_up: int = 0
    #: Pauses of the stream, by which a drain distinguishes a pause from a wrong clock.
    pauses: Pauses = field(default_factory=Pauses, metadata=ADDED)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON object, one entry for each field."""
        return fields_to_json(self)

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the state that snapshot() wrote; raise CheckpointError, naming the field, if it is invalid."""
        return fields_from_json(cls, snapshot)
