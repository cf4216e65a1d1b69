"""Advance progress by one micro-batch: add up its panes, and apply the policy's decision which to hold or abandon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skypane.operators.entry.pane_counts import PaneCount, merged_counts
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.progress.far_future import FutureDecision
from skypane.progress.pane_arrivals import PaneArrivals, SourceCount
from skypane.progress.progress_policy import ProgressPolicy, ProgressState
from skypane.types import Micros
from skypane.windows import Windows


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """The policy's new state, and its decision on panes too far ahead of the others.

    limit     panes of this batch that start after this time are held from now on; None: no pane is held
    held      these panes, with the number of their rows in this batch
    given_up  panes held before this batch that are abandoned: their rows from before it are quarantined now
    rejection counts of the rows of the abandoned panes
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
) -> ProgressStep:
    """Apply `policy` to one batch's panes, including late ones; `sources` counts its rows by source, if known."""
    panes = merged_counts(counts)
    arrivals = _arrivals(windows, panes, sources or {})
    verdict = policy.judge(state, arrivals)
    limit = verdict.limit
    held = [] if limit is None else [count for count in panes if windows.pane_start(count.pane) > limit]
    return ProgressStep(
        state=policy.step(state, arrivals),
        limit=limit,
        held={count.pane: count.rows for count in held},
        given_up=_given_up(windows, verdict),
        rejection=_rejection(verdict),
    )


def drained(policy: ProgressPolicy, state: ProgressState, panes: OpenPanes[Any]) -> ProgressStep:
    """Close all open panes, as if a punctuation came at the end of the last pane, without further rows.

    The policy decides which held panes are answered; the others are abandoned, and their rows are quarantined.
    """
    verdict, settled = policy.settle(state)
    given_up = _given_up(panes.windows, verdict)
    end = panes.without(given_up).end
    closed = settled if end is None else policy.close(settled, end)
    return ProgressStep(closed, None, {}, given_up, _rejection(verdict))


def _given_up(windows: Windows, verdict: FutureDecision) -> frozenset[int]:
    return frozenset(windows.pane_at(pane.start) for pane in verdict.given_up.panes)


def _rejection(verdict: FutureDecision) -> Rejection:
    rows = verdict.given_up.rows
    return Rejection({FUTURE: rows} if rows else {})


def _arrivals(windows: Windows, panes: list[PaneCount], sources: Mapping[str, SourceCount]) -> PaneArrivals:
    numbers = np.array([count.pane for count in panes], np.int64)
    return PaneArrivals(
        pane_start=windows.pane_start(numbers),
        pane_end=windows.pane_end(numbers),
        rows=np.array([count.rows for count in panes], np.int64),
        oldest=np.array([count.oldest for count in panes], np.int64),
        newest=np.array([count.newest for count in panes], np.int64),
        sources=sources,
    )
