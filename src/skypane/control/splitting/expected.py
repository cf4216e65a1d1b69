"""Which panes a batch will have, and how many rows of each: as the last one had, moved on as far as that one moved.

It costs nothing, and is right where rates last for longer than a batch. A batch that is not as foreseen is routed less
evenly than it could be; its answers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skypane.control.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class ExpectedPanes(JsonState):
    """rows: pane -> rows of the last batch that had any; step: by how many panes its newest lay beyond the one before."""

    rows: dict[int, int] = field(default_factory=dict)
    step: int = 0

    def observe(self, rows: Mapping[int, int]) -> ExpectedPanes:
        """Return what is expected after a batch with so many rows of each pane."""
        if not rows:
            return self
        return ExpectedPanes(dict(rows), max(0, max(rows) - max(self.rows)) if self.rows else 0)

    def next(self) -> dict[int, int]:
        """Return pane -> rows of the next batch."""
        return {pane + self.step: rows for pane, rows in self.rows.items()}
