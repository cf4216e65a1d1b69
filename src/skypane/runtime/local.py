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
from skypane.operators.entry.gate import Entry
from skypane.operators.entry.reasons import FUTURE
from skypane.operators.entry.rejection import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.operators.window_query import Answer, WindowWorker
from skypane.plan import ContinuousPlan, Plan
from skypane.types import Micros


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one event comes to: the windows that it completes, in order, its rows that did not enter, and where all rows are."""

    answers: tuple[Answer, ...]
    rejection: Rejection
    totals: RowTotals


@dataclass(frozen=True, slots=True)
class Updates:
    """What one event comes to for a continuous skyline: the updates that it completes (None: not begun), and the same."""

    rows: pa.Table | None
    rejection: Rejection
    totals: RowTotals


class Drain:
    """The end of a stream, for now: the windows that are still open are answered as if a punctuation had come there.

    What is held is answered too, or is rejected as future, as the policy's settle() says: nothing is left.
    """


Event: TypeAlias = "pa.Table | Drain"
"""A batch of rows, or the wish to see what there is."""


def run(plan: Plan, events: Iterable[Event]) -> Iterator[Outcome]:
    """Yield the outcome of each event; every window is answered once, in order, by the event that completes it."""
    worker: WindowWorker | None = None
    for step in _steps(plan, events):
        worker = worker or (plan.window_query(step.schema).worker() if step.schema is not None else None)
        answers = tuple(worker.answers(step.due, lambda partial: partial)) if worker else ()
        yield Outcome(answers, step.rejection, step.totals)


def run_continuous(plan: ContinuousPlan, events: Iterable[Event]) -> Iterator[Updates]:
    """Yield what each event comes to: updates of the span of time that it completes, by the definition of a stay.

    All rows of closed panes are looked at each time; what comes later changes no stay before the clock.
    """
    closed: list[pa.Table] = []
    clock: Micros | None = None
    for step in _steps(plan, events):
        closed += [rows for task in step.due for _, parts in task.panes for rows in parts]
        before, clock = clock, step.panes.begin
        rows = pa.concat_tables(closed).combine_chunks() if closed else None
        updates = None if rows is None or clock is None else _updates(plan, rows, before, clock)
        yield Updates(updates, step.rejection, step.totals)


def _updates(plan: ContinuousPlan, rows: pa.Table, before: Micros | None, clock: Micros) -> pa.Table:
    """Return the updates of the span from one clock to the next: where stays begin, and where they end."""
    stays = plan.query.stays(rows)
    low = int(plan.query.times(rows).min()) if before is None else before
    told = [
        (time, action, row)
        for action, times in (("ADD", stays.starts), ("DEL", stays.ends))
        for time, row in zip(times.tolist(), stays.rows.tolist(), strict=True)
        if low <= time < clock
    ]
    told.sort(key=lambda update: (update[0], update[1] == "ADD", update[2]))
    schema = plan.output_schema(rows.schema)
    columns = [
        pa.array([action for _, action, _ in told], pa.string()),
        pa.array([time for time, _, _ in told], pa.int64()),
    ]
    parts = rows.take(pa.array([row for _, _, row in told], pa.int64())).columns
    return pa.Table.from_arrays([columns[0], columns[1].cast(schema.field(1).type), *parts], schema=schema)


@dataclass(frozen=True, slots=True)
class _Step:
    """What one event does before anything is answered: windows that it completes, and what is open after it."""

    schema: pa.Schema | None
    due: list[WindowTask[pa.Table]]
    panes: OpenPanes[pa.Table]
    rejection: Rejection
    totals: RowTotals


def _steps(plan: Plan, events: Iterable[Event]) -> Iterator[_Step]:
    progress = plan.progress.init()
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    ahead: list[PaneRows] = []
    account = RowAccount()
    schema: pa.Schema | None = None
    for event in events:
        if isinstance(event, Drain):
            read, entry = 0, Entry((), Rejection())
            step = drained(plan.progress, progress, panes)
        else:
            plan.validate(event.schema)
            read, schema = event.num_rows, schema or event.schema
            entry = replace(plan.gate.after(progress.punctuation), keep=True).split(event)
            step = advance(plan.progress, plan.windows, progress, entry.counts, entry.sources)
        rejection = entry.rejection.merge(_given_up(ahead, step))
        ahead = [] if step.given_up else ahead
        ahead += [part for part in entry.usable if part.pane in step.held]
        panes = panes.without(step.given_up).add((part.pane, plan.query.lift(part.rows)) for part in entry.usable)
        progress = step.state
        due = panes.closed_by(progress.punctuation)
        panes = panes.retire(progress.punctuation)
        account = account.after(read, (part.count for part in entry.usable), rejection, step.given_up, due)
        totals = account.totals(progress.held, panes)
        totals.check()
        yield _Step(schema, due, panes, rejection, totals)


def _given_up(ahead: list[PaneRows], step: Advance) -> Rejection:
    """Return the rows that were too far in the future and that the stream has not followed."""
    return Rejection().merge(*(Rejection.of(part.rows, FUTURE) for part in ahead if part.pane in step.given_up))


def answers(plan: Plan, events: Iterable[Event]) -> Iterator[Answer]:
    """Yield each window's answer, once and in order, as soon as the event that completes it is through."""
    return (answer for outcome in run(plan, events) for answer in outcome.answers)
