"""The whole system in one process, without Spark: the definition of its semantics, and the oracle of its tests.

rows -> gate: pane -> lift -> partial -> [punctuation closes the pane] -> combine -> lower -> answer
        |-> rejection, with a reason
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from skypane.operators.advance import Advance, advance, drained
from skypane.operators.entry.counts import PaneRows
from skypane.operators.entry.reasons import FUTURE
from skypane.operators.entry.rejection import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.operators.window_query import Answer, WindowWorker
from skypane.plan import Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one event comes to: the windows that it completes, in order, and its rows that did not enter."""

    answers: tuple[Answer, ...]
    rejection: Rejection


class Drain:
    """The end of a stream, for now: the windows that are still open are answered as if a punctuation had come there."""


Event: TypeAlias = "pa.Table | Drain"
"""A batch of rows, or the wish to see what there is."""


def run(plan: Plan, events: Iterable[Event]) -> Iterator[Outcome]:
    """Yield the outcome of each event; every window is answered once, in order, by the event that completes it."""
    progress = plan.progress.init()
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    ahead: list[PaneRows] = []
    worker: WindowWorker | None = None
    for event in events:
        if isinstance(event, Drain):
            step, rejection = drained(plan.progress, progress, panes), Rejection()
        else:
            plan.validate(event.schema)
            worker = worker or plan.window_query(event.schema).worker()
            entry = replace(plan.gate.after(progress.punctuation), keep=True).split(event)
            step = advance(plan.progress, plan.windows, progress, entry.counts, entry.sources)
            rejection = entry.rejection.merge(_given_up(ahead, step))
            ahead = [] if step.given_up else ahead
            ahead += [part for part in entry.usable if part.pane in step.held]
            panes = panes.without(step.given_up).add((part.pane, plan.query.lift(part.rows)) for part in entry.usable)
        progress = step.state
        due = panes.closed_by(progress.punctuation)
        panes = panes.retire(progress.punctuation)
        yield Outcome(tuple(worker.answer(task, lambda partial: partial) for task in due) if worker else (), rejection)


def _given_up(ahead: list[PaneRows], step: Advance) -> Rejection:
    """Return the rows that were too far in the future and that the stream has not followed."""
    return Rejection().merge(*(Rejection.of(part.rows, FUTURE) for part in ahead if part.pane in step.given_up))


def answers(plan: Plan, events: Iterable[Event]) -> Iterator[Answer]:
    """Yield each window's answer, once and in order, as soon as the event that completes it is through."""
    return (answer for outcome in run(plan, events) for answer in outcome.answers)
