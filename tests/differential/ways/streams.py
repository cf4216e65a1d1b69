"""Ways through a stream whose policy drops rows: answers out, and the rows that did not enter, with their reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from tests.differential import objects
from tests.differential.case import Case
from tests.differential.ways.windowed import Rng, events, shares, together

from skypane.operators.advance import advance, drained
from skypane.operators.entry.pane_counts import PaneCount, PaneRows
from skypane.operators.entry.reject_reasons import FUTURE, REASON
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import PanePartial, PaneQuery
from skypane.plan import Plan
from skypane.progress.pane_arrivals import SourceCount
from skypane.runtime import local


class Run(NamedTuple):
    """What a stream came to: its answers, and its rows that did not enter, with their reason."""

    answers: pa.Table
    rejected: pa.Table


class AccountError(AssertionError):
    """A policy has counted other rows than came."""


def by_local(case: Case) -> Run:
    """The whole system in one process."""
    plan = objects.plan(case)
    outcomes = list(local.run(plan, events(case)))
    answers = [answer.rows for outcome in outcomes for answer in outcome.answers]
    return Run(together(plan, case, answers), _rejected(case, [one.rejection for one in outcomes]))


def _rejected(case: Case, rejections: list[Rejection]) -> pa.Table:
    schema = case.rows.schema.append(pa.field(REASON, pa.string()))
    return pa.concat_tables([schema.empty_table(), *(rows for one in rejections for rows in one.rows)])


def by_restarts(case: Case) -> Run:
    """Batch by batch, each lifted by several workers; what is remembered between batches goes through JSON, and is counted."""
    rng, plan = case.rng(9), objects.plan(case)
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    state: Any = plan.progress.init()
    answers: list[pa.Table] = []
    rejections: list[Rejection] = []
    held: dict[int, list[pa.Table]] = {}
    for event in events(case):
        batch = _Batch([], Rejection(), (), {}) if isinstance(event, local.Drain) else _lifted(rng, plan, state, event)
        step = (
            drained(plan.progress, state, panes)
            if isinstance(event, local.Drain)
            else advance(plan.progress, plan.windows, state, batch.counts, batch.sources)
        )
        rejections += [batch.rejection, *_given_up(held, step.abandoned)]
        for part in batch.usable:
            if part.pane in step.held:
                held.setdefault(part.pane, []).append(part.rows)
        panes = panes.without(step.abandoned).add((part.pane, part.partial) for part in batch.partials)
        state = _remembered(rng, plan, step.state)
        worker = plan.window_query(case.rows.schema).worker()
        answers += [one.rows for one in worker.answers(panes.closed_by(state.punctuation), lambda partial: partial)]
        panes = panes.retire(state.punctuation)
        if rng.random() < 0.5:
            panes = panes.replace(
                (pane, plan.query.combine(panes.panes[pane])) for pane in panes.scattered(state.punctuation)
            )
    _check_account(case, state, rejections)
    return Run(together(plan, case, answers), _rejected(case, rejections))


class _Batch(NamedTuple):
    """What the workers hand over of a batch, and its usable rows by pane."""

    partials: list[PanePartial]
    rejection: Rejection
    usable: tuple[PaneRows, ...]
    sources: Mapping[str, SourceCount]

    @property
    def counts(self) -> list[PaneCount]:
        return [*(part.count for part in self.partials), *self.rejection.late]


def _lifted(rng: Rng, plan: Plan, state: Any, rows: pa.Table) -> _Batch:
    gate = replace(plan.gate.after(state.punctuation), keep=True)
    lifted = []
    for share in shares(rng, rows):
        worker = PaneQuery(plan.query, gate)
        for batch in share:
            worker.absorb(batch)
        lifted.append(worker.close())
    entry = gate.split(rows)
    return _Batch(
        [part for one in lifted for part in one.partials],
        Rejection().merge(*(one.rejection for one in lifted)),
        entry.usable,
        entry.sources,
    )


def _remembered(rng: Rng, plan: Plan, state: Any) -> Any:
    """Return the state of a policy, at times as a restart reads it."""
    return plan.progress.restore(json.loads(json.dumps(plan.progress.snapshot(state)))) if rng.random() < 0.5 else state


def _given_up(held: dict[int, list[pa.Table]], panes: frozenset[int]) -> Iterator[Rejection]:
    for pane in panes:
        for rows in held.pop(pane, []):
            yield Rejection.of(rows, FUTURE)


def _check_account(case: Case, state: Any, rejections: list[Rejection]) -> None:
    """Every row that came is seen, held, abandoned, or was not a row to rank; those that were dropped were late."""
    reasons = Rejection().merge(*rejections)
    unusable = sum(rows for reason, rows in reasons.quarantined.items() if reason != FUTURE)
    counted = state.seen + state.held.rows + state.abandoned + unusable
    if counted != case.rows.num_rows:
        raise AccountError(f"{case.rows.num_rows} rows came, and {counted} are counted: {state}, {reasons.reasons}")
    if reasons.quarantined.get(FUTURE, 0) != state.abandoned or reasons.late_rows != state.dropped:
        raise AccountError(f"other rows are rejected, {reasons.reasons}, than the policy has counted: {state}")


STREAMS: dict[str, Callable[[Case], Run]] = {"local": by_local, "restarts": by_restarts}
