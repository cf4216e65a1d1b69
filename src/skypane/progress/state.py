"""State that all progress policies share, as a value that is written to the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

from skypane.progress.clock_offsets import ClockOffsets
from skypane.progress.far_future import HeldPanes
from skypane.progress.frontier import Frontier
from skypane.progress.pauses import Pauses
from skypane.progress.source_clocks import SourceClocks
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
    #: The gaps of the stream, by which rows that continue it differ from rows that are ahead.
    frontier: Frontier = field(default_factory=Frontier, metadata=ADDED)
    #: The sources whose clocks disagree with the stream, if sources are named.
    clocks: SourceClocks = field(default_factory=SourceClocks, metadata=ADDED)
    #: The sources whose clocks are off, and by how much.
    offsets: ClockOffsets = field(default_factory=ClockOffsets, metadata=ADDED)
    #: The start of the newest pane with accepted rows, which the newest time need not have followed.
    accepted: Micros | None = field(default=None, metadata=ADDED)
