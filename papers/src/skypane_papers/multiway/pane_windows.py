"""Combine windows from panes, all keys at once: the stage Output of the columnar designs."""

from __future__ import annotations

from math import gcd

import numpy as np

from skypane.types import BadInputError, ConfigError, IntArray, Micros
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.kernels import pane_tables


class PaneWindows:
    """The panes of `tables` threads, and the next window, which is at first the earliest that contains `time`.

    Counts and sums slide: new panes are added and old ones subtracted, so the cost of a window is that of its advance.
    Maxima and first values are combined from all panes of the window.

    ahead  panes beyond those of a window that a thread may fill
    """

    def __init__(self, aggregation: Aggregation, time: Micros, tables: int, ahead: int) -> None:
        if tables < 1 or ahead < 1:
            raise ConfigError(f"tables and ahead must be at least 1, got tables={tables}, ahead={ahead}")
        self.aggregation = aggregation
        self.pane = gcd(aggregation.size, aggregation.advance)
        self.each = aggregation.advance // self.pane
        self.span = aggregation.size // self.pane
        rows = self.span + ahead
        self._tables = [
            pane_tables.new_tables(self.pane, aggregation.keys, rows, aggregation.code, *aggregation.condition)
            for _ in range(tables)
        ]
        self._slides = aggregation.function in ("count", "sum", "avg")
        self._counts, self._states = (np.zeros(aggregation.keys, np.int64) for _ in range(2))
        self._ahead = ahead
        #: the first pane of the next window
        self.begin = self._first(time)
        #: the sums include the panes before this one
        self._summed = self.begin

    @property
    def end(self) -> Micros:
        """The end of the next window."""
        return (self.begin + self.span) * self.pane

    def update(self, table: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        """Update a thread's panes in order; return the number of accepted tuples."""
        if len(keys) and (keys.min() < 0 or keys.max() >= self.aggregation.keys):
            raise BadInputError(
                f"keys must be 0 to {self.aggregation.keys - 1}, got {keys.min()} to {keys.max()}; raise keys= of the "
                "aggregation"
            )
        return pane_tables.update_panes(self._tables[table], times, keys, values, self.begin + self.span + self._ahead)

    def next(self, until: Micros) -> Winset | None:
        """Return the next window with tuples that ends at or before `until`; None if there is none.

        All tuples before `until` must have been added.
        """
        while self.end <= until:
            found = self._window()
            if found is not None:
                self._move()
                return found
            self._skip(until)
        return None

    def _first(self, time: Micros) -> int:
        """Return the first pane of the earliest window that contains a time."""
        return ((time // self.pane - self.span) // self.each + 1) * self.each

    def _window(self) -> Winset | None:
        end = self.begin + self.span
        if self._slides:
            for pane in range(self._summed, end):
                for tables in self._tables:
                    pane_tables.add_pane(tables, pane, 1, self._counts, self._states)
            self._summed = end
        else:
            self._counts[:] = self._states[:] = 0
            for pane in range(self.begin, end):
                for tables in self._tables:
                    pane_tables.join_pane(tables, pane, self._counts, self._states)
        keys = np.flatnonzero(self._counts)
        if not len(keys):
            return None
        counts = self._counts[keys]
        states = counts if self.aggregation.function == "count" else self._states[keys]
        return self.aggregation.winset(self.begin * self.pane, keys, states, counts)

    def _move(self) -> None:
        """Advance to the next window."""
        for pane in range(self.begin, self.begin + self.each):
            for tables in self._tables:
                if self._slides:
                    pane_tables.add_pane(tables, pane, -1, self._counts, self._states)
                pane_tables.clear_pane(tables, pane)
        self.begin += self.each

    def _skip(self, until: Micros) -> None:
        """Advance from an empty window to the first that may have tuples, now or later."""
        rows = self.span + self._ahead
        later = range(self.begin + self.span, self.begin + rows)
        filled = (pane for pane in later if any(tables.counts[pane % rows].any() for tables in self._tables))
        pane = min(next(filled, until // self.pane), until // self.pane)
        self.begin = max(self.begin + self.each, self._first(pane * self.pane))
        self._summed = max(self._summed, self.begin)
