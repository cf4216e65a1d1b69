"""How one batch moves progress: its panes are added up, and the law says which of them are held or given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skypane.operators.entry.counts import PaneCount, merged_counts
from skypane.operators.entry.reasons import FUTURE
from skypane.operators.entry.rejection import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.progress.arrivals import Arrivals, SourceCount
from skypane.progress.future import Verdict
from skypane.progress.policy import ProgressPolicy, ProgressState
from skypane.types import Micros
from skypane.windows import Windows


@dataclass(frozen=True, slots=True)
class Advance:
    """The policy's new state, and what it says of panes too far ahead of the rest.

    limit     this batch's panes that start beyond it are held from now on; None: none is
    held      those panes, and how many rows of this batch they have
    given_up  panes held before this batch whose rows from before it are quarantined now
    rejection the rows of those panes, counted
    """

    state: ProgressState
    limit: Micros | None
    held: Mapping[int, int]
    given_up: frozenset[int]
    rejection: Rejection


def advance(
    policy: ProgressPolicy,
    windows: Windows,
    state: ProgressState,
    counts: Iterable[PaneCount],
    sources: Mapping[str, SourceCount] | None = None,
) -> Advance:
    """Take one batch's panes, late ones with them, through `policy`; `sources` are its rows by source, where known."""
    panes = merged_counts(counts)
    arrivals = _arrivals(windows, panes, sources or {})
    verdict = policy.judge(state, arrivals)
    limit = verdict.limit
    held = [] if limit is None else [count for count in panes if windows.pane_start(count.pane) > limit]
    return Advance(
        state=policy.step(state, arrivals),
        limit=limit,
        held={count.pane: count.rows for count in held},
        given_up=_given_up(windows, verdict),
        rejection=_rejection(verdict),
    )


def drained(policy: ProgressPolicy, state: ProgressState, panes: OpenPanes[Any]) -> Advance:
    """Close all open panes, as if a punctuation had come at the end of the last one, and no row with it.

    Of those that are held the policy says which are believed, and are answered; the rest is given up, and quarantined.
    """
    verdict, settled = policy.settle(state)
    given_up = _given_up(panes.windows, verdict)
    end = panes.without(given_up).end
    closed = settled if end is None else policy.close(settled, end)
    return Advance(closed, None, {}, given_up, _rejection(verdict))


def _given_up(windows: Windows, verdict: Verdict) -> frozenset[int]:
    return frozenset(windows.pane_at(pane.start) for pane in verdict.given_up.panes)


def _rejection(verdict: Verdict) -> Rejection:
    rows = verdict.given_up.rows
    return Rejection({FUTURE: rows} if rows else {})


def _arrivals(windows: Windows, panes: list[PaneCount], sources: Mapping[str, SourceCount]) -> Arrivals:
    numbers = np.array([count.pane for count in panes], np.int64)
    return Arrivals(
        pane_start=windows.pane_start(numbers),
        pane_end=windows.pane_end(numbers),
        rows=np.array([count.rows for count in panes], np.int64),
        oldest=np.array([count.oldest for count in panes], np.int64),
        newest=np.array([count.newest for count in panes], np.int64),
        sources=sources,
    )
