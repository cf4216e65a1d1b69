"""The whole system in one process, without Spark: it defines the semantics, and is the oracle of the tests.

rows -> gate: pane -> lift -> partial -> [punctuation closes the pane] -> combine -> lower -> answer
        |-> rejection, with a reason
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from skypane.naming import shortened
from skypane.operators.advance import ProgressStep, Reading, advance, drained, readmitted
from skypane.operators.amendments import AmendCounts, ClosedPanes, PaneSteps, amendment
from skypane.operators.answer_changes import answers_of
from skypane.operators.early_answers import EarlyAnswers, early_step
from skypane.operators.entry.entry_rules import Entry
from skypane.operators.entry.pane_counts import PaneRows
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.entry.row_runs import order_of
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.operators.window_query import WindowAnswer, WindowWorker
from skypane.plan import ContinuousPlan, Plan
from skypane.shared_plan import SharedPlan
from skypane.types import ConfigError, Micros


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """Outcome of one event: answers, rejected rows, totals of all rows.

    answers   of the windows that it amends, of those that it completes, then of open ones, each in order
    amended   what it amended; None if windows are answered once
    stays     the same answers as stays, if Plan.answers says so; those of another run of windows are another table
    """

    answers: tuple[WindowAnswer, ...]
    rejection: Rejection
    totals: RowTotals
    amended: AmendCounts | None = None
    stays: tuple[pa.Table, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Readmission:
    """Rows that were rejected for `reason` and come a second time, repaired; the progress policy does not see them."""

    rows: pa.Table
    reason: str


Event: TypeAlias = "pa.Table | Drain | Readmission"
"""A batch of rows, a drain, or rows that come a second time."""


def run(plan: Plan, events: Iterable[Event], clock: Callable[[], Micros] | None = None) -> Iterator[StepOutcome]:
    """Yield the outcome of each event; each window is answered once, in order, by the event that completes it.

    With Plan.amend it is answered again, as its next version, by each event with late rows of its panes. With Plan.early
    it is answered before its end, too, as its first versions (operators/early_answers.py).

    clock   returns when a batch arrives, for policies that need it (ProgressPolicy.needs_arrival)

    Raises ConfigError for a plan with a condition that Spark evaluates.
    """
    if plan.having is not None:
        raise ConfigError(f"having={shortened(plan.having.text)!r} is evaluated by Spark, and this runs without it")
    worker: WindowWorker | None = None
    keeper: WindowWorker | None = None
    for step in _steps(plan, events, clock):
        query = None if step.schema is None else plan.window_query(step.schema)
        if query is None:
            yield StepOutcome((), step.rejection, step.totals, step.amended)
            continue
        if step.again:  # the worker keeps merges of panes that have changed
            worker = None
        worker = worker or query.worker()
        again = answers_of(query.worker(), step.again, lambda partial: partial)
        due = answers_of(worker, step.due, lambda partial: partial)
        early = answers_of(query.worker(), step.early, lambda partial: partial)
        answers = (*again, *due, *early)
        stays: tuple[pa.Table, ...] = ()
        if plan.stays:
            keeper = keeper or query.worker()
            stays = tuple(some.rows for some in keeper.stays(step.due, lambda partial: partial))
        yield StepOutcome(answers, step.rejection, step.totals, step.amended, stays)


def run_shared(plan: SharedPlan, events: Sequence[Event]) -> Iterator[dict[str, StepOutcome]]:
    """Yield the outcomes of each event by query: several queries over one stream answer as each would alone."""
    outcomes = zip(*(run(one, events) for one in plan.plans.values()), strict=True)
    return (dict(zip(plan.plans, step, strict=True)) for step in outcomes)


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
    """Effect of one event before queries are answered.

    due     windows to answer at their end
    again   windows to answer again
    early   windows to answer before their end
    """

    schema: pa.Schema | None
    due: list[WindowTask[pa.Table]]
    again: list[WindowTask[pa.Table]]
    early: list[WindowTask[pa.Table]]
    amended: AmendCounts | None
    panes: OpenPanes[pa.Table]
    rejection: Rejection
    totals: RowTotals


def _steps(plan: Plan, events: Iterable[Event], clock: Callable[[], Micros] | None = None) -> Iterator[_Step]:
    progress = plan.progress.init()
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows, plan.first, plan.stop)
    closed = ClosedPanes.begun(panes)
    shown: EarlyAnswers[pa.Table] = EarlyAnswers()
    ahead: list[PaneRows] = []
    account = RowAccount()
    schema: pa.Schema | None = None
    for event in events:
        if isinstance(event, Drain):
            read, entry = 0, Entry((), Rejection())
            step = drained(plan.progress, progress, panes)
        else:
            rows = event.rows if isinstance(event, Readmission) else event
            plan.validate(rows.schema)
            read, schema = rows.num_rows, schema or rows.schema
            gate = replace(plan.rules_after(progress), keep=True)
            gate = gate if plan.amend is None else closed.rules(gate)
            if isinstance(event, Readmission):
                account = account.taken_back(event.reason, read)
                entry, step = replace(gate, limit=progress.newest, clocks=None).split(rows), readmitted(progress)
            else:
                entry, arrived = gate.split(rows), None if clock is None else clock()
                reading = Reading(arrived, order=partial(order_of, entry.panes, entry.times))
                known = (entry.counts, entry.sources, entry.shown)
                step = advance(plan.progress, plan.windows, progress, *known, reading)
        rejection = entry.rejection.merge(_discarded(ahead, step))
        ahead = [] if step.abandoned else ahead
        ahead += [part for part in entry.usable if part.pane in step.held]
        counts = [part.count for part in entry.usable]
        before = panes
        panes = panes.without(step.abandoned).add(closed.partials_of(count.pane for count in counts))
        panes = panes.add((part.pane, plan.query.lift(part.rows)) for part in entry.usable)
        progress = step.state
        due = panes.closed_by(progress.punctuation)
        again: list[WindowTask[pa.Table]] = []
        early: list[WindowTask[pa.Table]] = []
        amended: AmendCounts | None = None
        still = panes.retire(progress.punctuation)
        steps = PaneSteps(before, panes, still)
        if plan.early_rule is not None:
            begun = early_step(plan.early_rule, shown, steps, counts, due, progress)
            due, early, shown = begun.due, begun.tasks, begun.early
        if plan.amend is not None:
            done = amendment(
                plan.amend, closed.after_early(due), steps, counts, len(due), progress.punctuation, _nbytes
            )
            again, closed, amended = done.tasks, done.closed, done.counts
        panes = still
        read -= entry.rejection.rows_elsewhere
        account = account.after(read, counts, rejection, step.abandoned, [*again, *due])
        totals = account.totals(progress.held, panes)
        totals.check()
        yield _Step(schema, due, again, early, amended, panes, rejection, totals)


def _nbytes(partial: pa.Table) -> int:
    return int(partial.nbytes)


def _discarded(ahead: list[PaneRows], step: ProgressStep) -> Rejection:
    """Return the held rows that the policy discards, because the stream did not follow them."""
    return Rejection().merge(*(Rejection.of(part.rows, FUTURE) for part in ahead if part.pane in step.abandoned))


def answers(plan: Plan, events: Iterable[Event]) -> Iterator[WindowAnswer]:
    """Yield each window's answer, once and in order, after the event that completes it."""
    return (answer for outcome in run(plan, events) for answer in outcome.answers)
