"""A stream made ready for the pane-level farm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray, Micros
from skypane.windows import Windows


@dataclass(frozen=True, eq=False)
class Stream:
    """Tuples in order of arrival: seconds since the start, pane (from 0), work (1 is usual); closing as in Farm.

    points   (n, d) their values, smaller is better: results are those of the values; None: they are fitted
    """

    arrival: FloatArray
    pane: IntArray
    work: FloatArray
    closing: IntArray
    points: FloatArray | None = None

    @classmethod
    def of(
        cls, windows: Windows, event: IntArray, arrival: IntArray, slack: Micros, points: FloatArray | None = None
    ) -> Stream:
        """Return the stream of these event and arrival times (microseconds), closed by a constant slack (tp = tmax - K)."""
        if len(event) != len(arrival) or not len(event):
            raise ConfigError(f"need an event and an arrival time for each tuple, got {len(event)} and {len(arrival)}")
        panes = windows.panes_at(event)
        first = int(panes.min())
        punctuation = np.maximum.accumulate(event) - slack
        ends = windows.pane_end(np.arange(first, int(panes.max()) + 1))
        return cls(
            arrival=(arrival - arrival[0]) / 1e6,
            pane=panes - first,
            work=np.ones(len(event)),
            closing=np.searchsorted(punctuation, ends),
            points=points,
        )

    @property
    def panes(self) -> int:
        return len(self.closing)

    @cached_property
    def begun(self) -> FloatArray:
        """By pane, when its first tuple comes; infinite if none does."""
        found = np.full(self.panes, np.inf)
        found[self.pane[::-1]] = self.arrival[::-1]  # of several tuples, the one that is written last stays
        return found

    @cached_property
    def closed(self) -> FloatArray:
        """By pane, when it is closed; the end of the stream if that is not within it."""
        return self.arrival[np.minimum(self.closing, len(self.arrival) - 1)]
