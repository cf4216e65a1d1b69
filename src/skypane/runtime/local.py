"""The whole system in one process, without Spark: the definition of its semantics, and the oracle of its tests.

rows -> gate: pane -> lift -> partial -> [punctuation closes the pane] -> combine -> lower -> answer
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from skypane.operators.advance import advance
from skypane.operators.open_panes import OpenPanes
from skypane.operators.window_query import Answer, WindowWorker
from skypane.plan import Plan


def run(plan: Plan, batches: Iterable[pa.Table]) -> Iterator[Answer]:
    """Yield each window's answer, once and in order, as soon as the batch that completes it is through."""
    progress = plan.progress.init()
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    worker: WindowWorker | None = None
    for rows in batches:
        if worker is None:
            plan.validate(rows.schema)
            worker = plan.window_query(rows.schema).worker()
        closed = progress.punctuation
        entry = plan.gate.split(rows, None if closed is None else plan.windows.first_open(closed))
        step = advance(plan.progress, plan.windows, progress, entry.counts, entry.sources)
        progress = step.state
        panes = panes.without(step.given_up).add((part.pane, plan.query.lift(part.rows)) for part in entry.usable)
        for task in panes.closed_by(progress.punctuation):
            yield worker.answer(task, load=lambda partial: partial)
        panes = panes.retire(progress.punctuation)
