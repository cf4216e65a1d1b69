"""The whole system in one process, without Spark: it defines the semantics, and is the oracle of the tests.

rows -> gate: pane -> lift -> partial -> [punctuation closes the pane] -> combine -> lower -> answer
        |-> rejection, with a reason
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from skypane.operators.advance import ProgressStep, advance, drained
from skypane.operators.entry.entry_rules import Entry
from skypane.operators.entry.pane_counts import PaneRows
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.operators.window_query import WindowAnswer, WindowWorker
from skypane.plan import ContinuousPlan, Plan
from skypane.types import Micros


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """Outcome of one event: answers of the windows that it completes, in order; rejected rows; totals of all rows."""

    answers: tuple[WindowAnswer, ...]
    rejection: Rejection
    totals: RowTotals


@dataclass(frozen=True, slots=True)
class StepUpdates:
    """Outcome of one event for a continuous skyline: updates (None before the first pane), rejected rows, totals."""

    rows: pa.Table | None
    rejection: Rejection
    totals: RowTotals


class Drain:
    """The present end of a stream: windows that are still open are answered as if a punctuation closed them.

    Held rows are answered, too, or rejected as future, as the policy's settle() decides; no rows remain.
    """


Event: TypeAlias = "pa.Table | Drain"
"""A batch of rows, or a drain."""


def run(plan: Plan, events: Iterable[Event], clock: Callable[[], Micros] | None = None) -> Iterator[StepOutcome]:
    """Yield the outcome of each event; each window is answered once, in order, by the event that completes it.

    clock   returns when a batch arrives, for policies that need it (ProgressPolicy.needs_arrival)
    """
    worker: WindowWorker | None = None
    for step in _steps(plan, events, clock):
        worker = worker or (plan.window_query(step.schema).worker() if step.schema is not None else None)
        answers = tuple(worker.answers(step.due, lambda partial: partial)) if worker else ()
        yield StepOutcome(answers, step.rejection, step.totals)


def run_continuous(plan: ContinuousPlan, events: Iterable[Event]) -> Iterator[StepUpdates]:
    """Yield the outcome of each event: updates of the time span that it completes, by the definition of a stay.

    Each event evaluates all rows of closed panes again; later rows change no stay before the clock.
    """
    closed: list[pa.Table] = []
    clock: Micros | None = None
    for step in _steps(plan, events):
        closed += [rows for task in step.due for _, parts in task.panes for rows in parts]
        before, clock = clock, step.panes.begin
        rows = pa.concat_tables(closed).combine_chunks() if closed else None
        updates = None if rows is None or clock is None else _updates(plan, rows, before, clock)
        yield StepUpdates(updates, step.rejection, step.totals)


def _updates(plan: ContinuousPlan, rows: pa.Table, before: Micros | None, clock: Micros) -> pa.Table:
    """Return the updates in [before, clock): ADD where stays begin, DEL where they end."""
    stays = plan.query.stays(rows)
    low = int(plan.query.times(rows).min()) if before is None else before
    updates = [
        (time, action, row)
        for action, times in (("ADD", stays.starts), ("DEL", stays.ends))
        for time, row in zip(times.tolist(), stays.rows.tolist(), strict=True)
        if low <= time < clock
    ]
    updates.sort(key=lambda update: (update[0], update[1] == "ADD", update[2]))
    schema = plan.output_schema(rows.schema)
    columns = [
        pa.array([action for _, action, _ in updates], pa.string()),
        pa.array([time for time, _, _ in updates], pa.int64()),
    ]
    parts = rows.take(pa.array([row for _, _, row in updates], pa.int64())).columns
    return pa.Table.from_arrays([columns[0], columns[1].cast(schema.field(1).type), *parts], schema=schema)


@dataclass(frozen=True, slots=True)
class _Step:
    """Effect of one event before queries are answered: due windows, open panes, rejected rows, totals."""

    schema: pa.Schema | None
    due: list[WindowTask[pa.Table]]
    panes: OpenPanes[pa.Table]
    rejection: Rejection
    totals: RowTotals


def _steps(plan: Plan, events: Iterable[Event], clock: Callable[[], Micros] | None = None) -> Iterator[_Step]:
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
            arrived = None if clock is None else clock()
            step = advance(plan.progress, plan.windows, progress, entry.counts, entry.sources, arrived)
        rejection = entry.rejection.merge(_discarded(ahead, step))
        ahead = [] if step.abandoned else ahead
        ahead += [part for part in entry.usable if part.pane in step.held]
        panes = panes.without(step.abandoned).add((part.pane, plan.query.lift(part.rows)) for part in entry.usable)
        progress = step.state
        due = panes.closed_by(progress.punctuation)
        panes = panes.retire(progress.punctuation)
        account = account.after(read, (part.count for part in entry.usable), rejection, step.abandoned, due)
        totals = account.totals(progress.held, panes)
        totals.check()
        yield _Step(schema, due, panes, rejection, totals)


def _discarded(ahead: list[PaneRows], step: ProgressStep) -> Rejection:
    """Return the held rows that the policy discards, because the stream did not follow them."""
    return Rejection().merge(*(Rejection.of(part.rows, FUTURE) for part in ahead if part.pane in step.abandoned))


def answers(plan: Plan, events: Iterable[Event]) -> Iterator[WindowAnswer]:
    """Yield each window's answer, once and in order, after the event that completes it."""
    return (answer for outcome in run(plan, events) for answer in outcome.answers)
