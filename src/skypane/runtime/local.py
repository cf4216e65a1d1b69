"""The whole system in one process, without Spark: the definition of its semantics, and the oracle of its tests.

rows -> gate: pane -> lift -> partial -> [punctuation closes the pane] -> combine -> lower -> answer
        |-> rejection, with a reason
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from skypane.operators.advance import Advance, advance
from skypane.operators.entry.gate import Entry
from skypane.operators.entry.reasons import FUTURE
from skypane.operators.entry.rejection import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.operators.window_query import Answer, WindowWorker
from skypane.plan import Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch comes to: the windows that it completes, in order, and its rows that did not enter."""

    answers: tuple[Answer, ...]
    rejection: Rejection


def run(plan: Plan, batches: Iterable[pa.Table]) -> Iterator[Outcome]:
    """Yield the outcome of each batch; every window is answered once, in order, by the batch that completes it."""
    progress = plan.progress.init()
    held: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    worker: WindowWorker | None = None
    for rows in batches:
        if worker is None:
            plan.validate(rows.schema)
            worker = plan.window_query(rows.schema).worker()
        entry = replace(plan.gate.after(progress.punctuation), keep=True).split(rows)
        step = advance(plan.progress, plan.windows, progress, entry.counts)
        progress = step.state
        held = held.add(
            (part.pane, plan.query.lift(part.rows)) for part in entry.usable if part.pane not in step.future
        )
        answers = [worker.answer(task, load=lambda partial: partial) for task in held.closed_by(progress.punctuation)]
        held = held.retire(progress.punctuation)
        yield Outcome(tuple(answers), _rejected(entry, step))


def _rejected(entry: Entry, step: Advance) -> Rejection:
    """Return what the gate rejected, and the rows too far in the future, which only a whole batch shows."""
    future = (Rejection.of(part.rows, FUTURE) for part in entry.usable if part.pane in step.future)
    return entry.rejection.merge(*future)


def answers(plan: Plan, batches: Iterable[pa.Table]) -> Iterator[Answer]:
    """Yield each window's answer, once and in order, as soon as the batch that completes it is through."""
    return (answer for outcome in run(plan, batches) for answer in outcome.answers)
