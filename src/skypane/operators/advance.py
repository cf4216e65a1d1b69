"""Advance progress by one micro-batch: add up its panes, and apply the policy's decision which to hold or abandon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from skypane.operators.entry.pane_counts import PaneCount, merged_counts
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.entry.row_runs import ReadingOrder
from skypane.operators.open_panes import OpenPanes
from skypane.policy import Decision
from skypane.progress.far_future import FutureDecision, HeldPanes
from skypane.progress.pane_arrivals import PaneArrivals, PaneRun, SourceCount
from skypane.progress.progress_policy import ProgressPolicy, ProgressState, Punctuation
from skypane.types import Micros
from skypane.windows import Windows


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """The policy's new state, and its decision on panes too far ahead of the others.

    decision   the punctuation, and the reason
    held       panes of this batch that are held from now on, with the number of their rows in this batch
    abandoned  panes held before this batch that are abandoned: their rows from before it are quarantined now
    rejection  counts of the rows of the abandoned panes
    order      the order of the batch if the punctuation follows from it, because a replay, which may read in another one, has
               to use the same; None: it is not known
    by_order   whether the punctuation follows from it
    """

    state: ProgressState
    decision: Decision[Punctuation]
    held: Mapping[int, int]
    abandoned: frozenset[int]
    rejection: Rejection
    order: ReadingOrder | None = None
    by_order: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """How a batch was read, as far as it is known.

    arrived         when it arrived, if the policy needs it
    waiting_since   event time since which rows wait at the inputs, if the policy needs it and the source knows it
    order           returns the order of its rows, None if it is not known; None: they came at once
    """

    arrived: Micros | None = None
    waiting_since: Micros | None = None
    order: Callable[[], ReadingOrder | None] | None = None


AT_ONCE: Final = Reading()


def advance(
    policy: ProgressPolicy,
    windows: Windows,
    state: ProgressState,
    counts: Iterable[PaneCount],
    sources: Mapping[str, SourceCount] | None = None,
    shown: Mapping[str, Micros] | None = None,
    reading: Reading = AT_ONCE,
) -> ProgressStep:
    """Apply `policy` to one batch's panes, including late ones.

    sources   the batch's rows by source, if known
    shown     newest time by the source's own clock, of sources whose clocks are off (PaneArrivals.shown)
    """
    panes = merged_counts(counts)
    counted = _arrivals(windows, panes, sources or {})
    arrivals = replace(counted, shown=shown or {}, arrived=reading.arrived, waiting_since=reading.waiting_since)
    after, decision = policy.decide(state, arrivals)
    read, by_order = None, False
    if reading.order is not None and policy.asks_order(state, arrivals):
        at_once, read = after.punctuation, reading.order()
        after, decision = policy.decide(state, _ordered(windows, arrivals, read))
        by_order = state.newest is None or after.punctuation != at_once
    future = decision.value.future
    limit = future.limit
    held = [] if limit is None else [count for count in panes if windows.pane_start(count.pane) > limit]
    return ProgressStep(
        state=after,
        decision=decision,
        held={count.pane: count.rows for count in held},
        abandoned=_numbers(windows, future.abandoned),
        rejection=_rejection(future.abandoned),
        order=read,
        by_order=by_order,
    )


def drained(policy: ProgressPolicy, state: ProgressState, panes: OpenPanes[Any]) -> ProgressStep:
    """Close all open panes, as if a punctuation came at the end of the last pane, without further rows.

    The policy decides which held panes are answered; the others are abandoned, and their rows are quarantined.
    """
    settled, decision = policy.settle(state)
    abandoned = decision.value.future.abandoned
    numbers = _numbers(panes.windows, abandoned)
    end = panes.without(numbers).end
    closed = settled if end is None else policy.close(settled, end)
    closing = replace(decision, value=replace(decision.value, time=closed.punctuation))
    return ProgressStep(closed, closing, {}, numbers, _rejection(abandoned))


def readmitted(state: ProgressState) -> ProgressStep:
    """Return the step of rows that come a second time: the policy has seen them, so nothing moves."""
    unmoved = Punctuation(state.punctuation, FutureDecision(state.newest))
    why = "rows that were rejected before have been readmitted, which moves nothing"
    return ProgressStep(state, Decision("progress", unmoved, why), {}, frozenset(), Rejection())


def _numbers(windows: Windows, held: HeldPanes) -> frozenset[int]:
    return frozenset(windows.pane_at(pane.start) for pane in held.panes)


def _rejection(abandoned: HeldPanes) -> Rejection:
    return Rejection({FUTURE: abandoned.rows} if abandoned.rows else {})


def _ordered(windows: Windows, arrivals: PaneArrivals, order: ReadingOrder | None) -> PaneArrivals:
    if order is None:
        return replace(arrivals, runs=None)
    runs = (PaneRun(_arrivals(windows, run.counts, {}), run.delay) for run in order.runs)
    return replace(arrivals, runs=tuple(runs), ends=order.ends)


def _arrivals(windows: Windows, panes: Sequence[PaneCount], sources: Mapping[str, SourceCount]) -> PaneArrivals:
    numbers = np.array([count.pane for count in panes], np.int64)
    return PaneArrivals(
        pane_start=windows.pane_start(numbers),
        pane_end=windows.pane_end(numbers),
        rows=np.array([count.rows for count in panes], np.int64),
        oldest=np.array([count.oldest for count in panes], np.int64),
        newest=np.array([count.newest for count in panes], np.int64),
        sources=sources,
        windows=windows,
    )
