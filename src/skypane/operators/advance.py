"""How one batch moves progress: its panes are summed up, those too far in the future set aside, the law is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skypane.operators.entry.counts import PaneCount, merged_counts
from skypane.operators.entry.reasons import FUTURE
from skypane.operators.entry.rejection import Rejection
from skypane.progress.arrivals import Arrivals
from skypane.progress.policy import ProgressPolicy, ProgressState
from skypane.types import Micros
from skypane.windows import Windows


@dataclass(frozen=True, slots=True)
class Advance:
    """The policy's new state, and what the batch may not bring: panes starting beyond `limit` are quarantined."""

    state: ProgressState
    limit: Micros | None
    future: frozenset[int]
    #: the rows of those panes, counted
    rejection: Rejection


def advance(policy: ProgressPolicy, windows: Windows, state: ProgressState, counts: Iterable[PaneCount]) -> Advance:
    """Take one batch's panes, late ones with them, through `policy`."""
    panes = merged_counts(counts)
    arrivals = _arrivals(windows, panes)
    limit = policy.limit(state, arrivals)
    future = [] if limit is None else [count for count in panes if windows.pane_start(count.pane) > limit]
    return Advance(
        state=policy.step(state, arrivals.upto(limit)),
        limit=limit,
        future=frozenset(count.pane for count in future),
        rejection=Rejection({FUTURE: sum(count.rows for count in future)} if future else {}),
    )


def drained(policy: ProgressPolicy, state: ProgressState, end: Micros | None) -> Advance:
    """Close everything up to `end`, as if a punctuation had come there, and no row with it."""
    return Advance(state if end is None else policy.close(state, end), None, frozenset(), Rejection())


def _arrivals(windows: Windows, panes: list[PaneCount]) -> Arrivals:
    start = np.array([windows.pane_start(count.pane) for count in panes], np.int64)
    return Arrivals(
        pane_start=start,
        pane_end=start + windows.pane,
        rows=np.array([count.rows for count in panes], np.int64),
        oldest=np.array([count.oldest for count in panes], np.int64),
        newest=np.array([count.newest for count in panes], np.int64),
    )
