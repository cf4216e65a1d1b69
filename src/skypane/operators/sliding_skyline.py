"""The skyline of a window that slides over panes: each row is compared once, however many windows hold it.

A row of pane p is in the windows of w panes whose last pane is p to p + w - 1. It is in the answers of those that hold
no pane with a better row: the youngest such pane before p gives the first of these windows, and the first such pane
after p gives their end. This is the continuous skyline (fronts/) with panes as instants: the answer of a window is the
front at its last pane. The cost of a window is therefore that of its last pane and of a copy of its answer; nothing is
merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.operators.fronts.row_front import FrontRows
from skypane.operators.stays import WindowStays
from skypane.preference import Preference
from skypane.types import IntArray

FEW_PANES: Final = 2
"""Up to this many panes, a merge is cheaper than comparisons in both directions: a window of 2 panes takes 1.04 ms with
a merge and 1.21 ms with comparisons, one of 3 panes 1.43 and 1.38, one of 10 panes 5.1 and 2.5; with 12 criteria 3.9
and 4.1, 6.7 and 5.8, 40.6 and 12.1 (8 criteria unless stated, CPU, 10,000 independent rows per pane)."""


class SlidingSkyline:
    """A queue of skylines of panes; its answer is the skyline of `panes` panes from the last eviction on.

    lower   what is made of each skyline; None: nothing
    """

    def __init__(
        self, rows: FrontRows, schema: pa.Schema, panes: int, lower: Callable[[pa.Table], pa.Table] | None
    ) -> None:
        self._rows = rows
        self._panes = panes
        self._lower = lower
        self._none = schema.empty_table()
        #: pushed since the last answer
        self._coming: list[tuple[int, pa.Table]] = []
        self._first = 0

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane that is younger than all others."""
        self._coming.append((pane, partial))

    def evict_before(self, pane: int) -> None:
        """Remove every pane older than `pane`."""
        self._first = pane

    def answer(self) -> pa.Table:
        """Return the answer of the window that begins with the pane of the last eviction."""
        return next(self.answers([self._first]))

    def answers(self, firsts: Sequence[int]) -> Iterator[pa.Table]:
        """Yield the answers of the windows that begin with these panes, ascending; all their panes have been pushed."""
        skylines = self._rows.currents(*self._pushed(), self._clocks(firsts))
        return skylines if self._lower is None else map(self._lower, skylines)

    @property
    def knows_stays(self) -> bool:
        return self._lower is None

    def stays(self, firsts: Sequence[int]) -> tuple[pa.Table, WindowStays]:
        """Return the rows of all these windows, each once, and by place the windows that hold it; instead of answers()."""
        return self._rows.stays(*self._pushed(), self._clocks(firsts))

    def _clocks(self, firsts: Sequence[int]) -> list[int]:
        return [first + self._panes for first in firsts]

    def _pushed(self) -> tuple[pa.Table, IntArray]:
        """Return the rows pushed since the last answer, and the pane of each."""
        coming, self._coming = self._coming, []
        rows = pa.concat_tables([self._none, *(partial for _, partial in coming)])
        sizes = [partial.num_rows for _, partial in coming]
        return rows, np.repeat(np.array([pane for pane, _ in coming], np.int64), sizes)


def sliding_skyline(
    preference: Preference,
    groups: tuple[str, ...],
    schema: pa.Schema,
    panes: int,
    lower: Callable[[pa.Table], pa.Table] | None,
) -> SlidingSkyline | None:
    """Return an empty queue for windows of `panes` panes; None for a chain of levels, where each level is a skyline.

    Return None, too, if one merge per window is cheaper.
    """
    if len(preference.levels) > 1 or (not groups and panes <= FEW_PANES):
        return None
    return SlidingSkyline(FrontRows(preference, groups, panes, schema), schema, panes, lower)
