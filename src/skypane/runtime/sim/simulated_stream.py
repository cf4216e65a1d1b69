"""A stream prepared for the pane-level farm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray, Micros
from skypane.windows import Windows


@dataclass(frozen=True, eq=False)
class SimulatedStream:
    """Tuples in order of arrival: seconds since the start, pane (from 0), work (1 is usual); closing as in FarmState.

    points   (n, d) values of the tuples, smaller is better, for exact results; None: the sizes of results are estimated
    share    (panes,) estimated size of the results of a pane, as a share of the usual one; None: 1 for each pane
    """

    arrival: FloatArray
    pane: IntArray
    work: FloatArray
    closing: IntArray
    points: FloatArray | None = None
    share: FloatArray | None = None

    @classmethod
    def of(
        cls, windows: Windows, event: IntArray, arrival: IntArray, slack: Micros, points: FloatArray | None = None
    ) -> SimulatedStream:
        """Return the stream of given event and arrival times (microseconds).

        Panes are closed by a constant slack K, `slack` (tp = tmax - K).
        """
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
        """The arrival of each pane's first tuple; infinite for a pane without tuples."""
        found = np.full(self.panes, np.inf)
        found[self.pane[::-1]] = self.arrival[::-1]  # in reverse order, so that the first tuple is written last
        return found

    @cached_property
    def closed(self) -> FloatArray:
        """The time at which each pane is closed; the end of the stream if it is not closed within it."""
        return self.arrival[np.minimum(self.closing, len(self.arrival) - 1)]
