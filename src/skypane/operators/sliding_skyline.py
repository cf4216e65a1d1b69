"""The skyline of a window that slides over panes: each row is compared once, however many windows it is in.

A row of pane p is in the windows whose last pane is p up to p + w - 1, w panes long. Of those it is in the answer of the ones
that hold none of the panes with a row that is better: the youngest such pane before p says from which window on, the first one
after p until which. That is the continuous skyline (continuous/) with panes for instants, and the answer of a window is its
front then. So a window costs what its last pane brings, and a copy of its answer: nothing is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.operators.continuous.front_rows import FrontRows
from skypane.preference import Preference

FEW_PANES: Final = 2
"""Of so few panes a merge is cheaper than a compare in two directions: a window of 2 panes takes 1.04 ms for a merge and 1.21 so,
one of 3 panes 1.43 and 1.38, one of 10 panes 5.1 and 2.5; with 12 criteria 3.9 and 4.1, 6.7 and 5.8, 40.6 and 12.1 (8 criteria
unless said, CPU, 10,000 independent rows a pane)."""


class SlidingSkyline:
    """A queue of partials, each a skyline: the answer is `lower` of the skyline of `panes` panes, from that of the last eviction on."""

    def __init__(self, rows: FrontRows, schema: pa.Schema, panes: int, lower: Callable[[pa.Table], pa.Table]) -> None:
        self._rows = rows
        self._panes = panes
        self._lower = lower
        self._none = schema.empty_table()
        #: pushed since the last answer
        self._coming: list[tuple[int, pa.Table]] = []
        self._first = 0

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane younger than all."""
        self._coming.append((pane, partial))

    def evict_before(self, pane: int) -> None:
        """Forget every pane older than `pane`."""
        self._first = pane

    def answer(self) -> pa.Table:
        """Return the answer of the window that begins with the pane evicted up to."""
        return next(self.answers([self._first]))

    def answers(self, firsts: Sequence[int]) -> Iterator[pa.Table]:
        """Yield the answers of windows that begin with these panes, ascending; all panes of all of them have been pushed."""
        coming, self._coming = self._coming, []
        rows = pa.concat_tables([self._none, *(partial for _, partial in coming)])
        sizes = [partial.num_rows for _, partial in coming]
        panes = np.repeat(np.array([pane for pane, _ in coming], np.int64), sizes)
        return map(self._lower, self._rows.currents(rows, panes, [first + self._panes for first in firsts]))


def sliding_skyline(
    preference: Preference,
    groups: tuple[str, ...],
    schema: pa.Schema,
    panes: int,
    lower: Callable[[pa.Table], pa.Table],
) -> SlidingSkyline | None:
    """Return an empty queue for windows of `panes` panes; None for a chain of levels, of which each is a skyline of its own.

    None, too, where one merge a window is cheaper.
    """
    if len(preference.levels) > 1 or (not groups and panes <= FEW_PANES):
        return None
    return SlidingSkyline(FrontRows(preference, groups, panes, schema), schema, panes, lower)
