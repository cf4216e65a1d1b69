"""State that all progress policies share, as a value that is written to the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

from skypane.progress.far_future import HeldPanes
from skypane.progress.pauses import Pauses
from skypane.snapshots import ADDED, JsonState, renamed
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
    abandoned: int = field(default=0, metadata=renamed("given_up"))
    #: Pauses of the stream, by which a drain distinguishes a pause from a wrong clock.
    pauses: Pauses = field(default_factory=Pauses, metadata=ADDED)
