"""Expected panes of the next batch and their rows: those of the last batch, shifted by as far as that one had moved.

The forecast costs nothing and is right if rates last longer than a batch. If it is wrong, the batch is routed less
evenly; the answers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skypane.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class ExpectedPanes(JsonState):
    """rows: pane -> rows of the last batch with rows; step: panes from the newest one before it to its newest."""

    rows: dict[int, int] = field(default_factory=dict)
    step: int = 0

    def observe(self, rows: Mapping[int, int]) -> ExpectedPanes:
        """Return the expectation after a batch with these rows by pane."""
        if not rows:
            return self
        return ExpectedPanes(dict(rows), max(0, max(rows) - max(self.rows)) if self.rows else 0)

    def next(self) -> dict[int, int]:
        """Return the expected pane -> rows of the next batch."""
        return {pane + self.step: rows for pane, rows in self.rows.items()}
