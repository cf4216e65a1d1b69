"""Measures of a batch that explain its losses: delays of late rows, rows by source, clocks that are off, held rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from skypane.operators.entry.pane_counts import PaneCount
from skypane.progress.clock_offsets import ClockOffsets
from skypane.progress.pane_arrivals import SourceCount
from skypane.progress.progress_policy import ProgressState
from skypane.progress.source_clocks import SourceClocks
from skypane.types import Micros

_SOURCES: Final = 50
"""Sources of a batch that are counted; each batch keeps its metrics."""
_CLOCKS: Final = 10
_BATCHES: Final = 5
"""In how many batches a clock must be off."""


def rows_by_source(sources: Mapping[str, SourceCount]) -> dict[str, int]:
    """Return the rows by source; {} if there are too many sources."""
    return {name: source.rows for name, source in sources.items()} if len(sources) <= _SOURCES else {}


def delays(late: Sequence[PaneCount], newest: Micros | None) -> dict[str, Micros]:
    """Return the least, the median and the largest delay behind `newest` of late rows, the median by their panes."""
    if not late or newest is None:
        return {}
    middle = np.array([(count.oldest + count.newest) // 2 for count in late])
    rows = np.cumsum([count.rows for count in late])
    median = int(middle[np.searchsorted(rows, (rows[-1] + 1) // 2)])
    most, least = newest - min(count.oldest for count in late), newest - max(count.newest for count in late)
    return {"least": least, "median": newest - median, "most": most}


def clocks_off(state: ProgressState) -> dict[str, Micros]:
    """Return the clocks that are off, the farthest first; {} if the policy does not judge them."""
    seen = getattr(state, "clocks", SourceClocks()).off
    constant = {name: one for name, one in seen.items() if one.constant and one.batches >= _BATCHES}
    by = {name: (one.nearest + one.farthest) // 2 for name, one in constant.items()}
    by |= getattr(state, "offsets", ClockOffsets()).learned
    return {name: by[name] for name in sorted(by, key=lambda name: (-abs(by[name]), name))[:_CLOCKS]}


def held_ahead(state: ProgressState) -> Micros | None:
    """Return how far the nearest held rows are beyond the newest time; None if no row is held."""
    starts = [pane.oldest for pane in state.held.panes]
    return None if not starts or state.newest is None else min(starts) - state.newest
