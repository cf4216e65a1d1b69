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
from skypane.operators.entry.gate import Entry
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
    held: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    worker: WindowWorker | None = None
    for event in events:
        if isinstance(event, Drain):
            step, rejection = drained(plan.progress, progress, held.end), Rejection()
        else:
            plan.validate(event.schema)
            worker = worker or plan.window_query(event.schema).worker()
            entry = replace(plan.gate.after(progress.punctuation), keep=True).split(event)
            step = advance(plan.progress, plan.windows, progress, entry.counts)
            rejection = _rejected(entry, step)
            held = held.add(
                (part.pane, plan.query.lift(part.rows)) for part in entry.usable if part.pane not in step.future
            )
        progress = step.state
        due = held.closed_by(progress.punctuation)
        held = held.retire(progress.punctuation)
        yield Outcome(tuple(worker.answer(task, lambda partial: partial) for task in due) if worker else (), rejection)


def _rejected(entry: Entry, step: Advance) -> Rejection:
    """Return what the gate rejected, and the rows too far in the future, which only a whole batch shows."""
    future = (Rejection.of(part.rows, FUTURE) for part in entry.usable if part.pane in step.future)
    return entry.rejection.merge(*future)


def answers(plan: Plan, events: Iterable[Event]) -> Iterator[Answer]:
    """Yield each window's answer, once and in order, as soon as the event that completes it is through."""
    return (answer for outcome in run(plan, events) for answer in outcome.answers)
