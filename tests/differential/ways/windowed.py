"""Ways to the answers of windows: rows in, answers with their window's bounds out, in order of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from tests.differential import objects
from tests.differential.case import Case
from tests.differential.definition.windows import members, times, usable

from skypane.operators.open_panes import OpenPanes
from skypane.operators.pane_query import PaneQuery
from skypane.operators.query import DivisibleQuery, PaneQueue, Query, QueueQuery
from skypane.operators.window_query import TwoStacks
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.batch import RUN_OVERLAPS, _AnswerRuns, _LiftPanes
from skypane.runtime.table_batching import decoded, encoded

Rng = np.random.Generator


def by_local(case: Case) -> pa.Table:
    """The whole system in one process, batch by batch."""
    plan = objects.plan(case)
    return together(plan, case, [answer.rows for answer in local.answers(plan, events(case))])


def events(case: Case) -> Iterator[Any]:
    """Yield batches and drains; the last event is a drain."""
    for number, rows in enumerate(case.batches):
        yield rows
        if number in case.drains:
            yield local.Drain()
    yield local.Drain()


def by_tree(case: Case) -> pa.Table:
    """Each window by itself: lifted in parts cut at random, which are combined in a random tree, some from bytes."""
    rng, plan = case.rng(1), objects.plan(case)
    rows = case.rows.take(pa.array(usable(case.rows, case.spec)))
    answers = []
    for start, mine in members(times(rows), case.windows):
        partial = tree(rng, plan.query, parts(rng, rows.take(pa.array(rng.permutation(mine)))))
        window = (start - case.windows.offset) // case.windows.slide
        answers.append(plan.window_query(rows.schema).stamp(window, lowered(rng, plan.query, partial)))
    return together(plan, case, answers)


def parts(rng: Rng, rows: pa.Table) -> list[pa.Table]:
    """Return rows in parts, some of which may be empty."""
    cuts = np.sort(rng.integers(0, rows.num_rows + 1, int(rng.integers(0, 6)))).tolist()
    return [rows.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, rows.num_rows], strict=True)]


def tree(rng: Rng, query: Query, some: Sequence[pa.Table], *, lift: bool = True) -> pa.Table:
    """Return the partial of all parts, lifted first, combined two or three at a time, in any order."""
    partials = [query.lift(one) if lift else one for one in some]
    while len(partials) > 1:
        partials = [partials[place] for place in rng.permutation(len(partials))]
        count = int(rng.integers(2, 4))
        together = query.combine(partials[:count])
        partials[:count] = [decoded(encoded(together)) if rng.random() < 0.3 else together]
    return partials[0]


def lowered(rng: Rng, query: Query, partial: pa.Table) -> pa.Table:
    """Return the answer; where keys can be divided, of each share by itself at times."""
    if isinstance(query, DivisibleQuery) and query.divisible(partial.schema) and rng.random() < 0.5:
        count = int(rng.integers(1, 4))
        return pa.concat_tables([query.lower(query.part_of(partial, number, count)) for number in range(count)])
    return query.lower(partial)


def by_worker(case: Case) -> pa.Table:
    """Panes lifted by several workers, a buffer at a time; windows by a worker that is begun again now and then."""
    rng, plan = case.rng(2), objects.plan(case)
    tasks = _open_panes(rng, plan, case).all_windows()
    answers: list[pa.Table] = []
    while len(answers) < len(tasks):
        alone = rng.random() < 0.3
        worker = plan.window_query(case.rows.schema).worker(windows=1 if alone else None)
        for _ in range(1 if alone else int(rng.integers(1, 6))):
            some = tasks[len(answers) : len(answers) + (1 if alone else int(rng.integers(1, 30)))]
            answers += [answer.rows for answer in worker.answers(some, lambda partial: partial)]
    return together(plan, case, answers)


def by_queue(case: Case) -> pa.Table:
    """The queue of the query, or two stacks, pushed and evicted pane by pane."""
    rng, plan = case.rng(3), objects.plan(case)
    windows, query = plan.windows, plan.query
    panes = _open_panes(rng, plan, case)
    merged = {pane: tree(rng, query, partials, lift=False) for pane, partials in panes.panes.items()}
    queue, newest, answers = _queue(rng, plan, merged), -(2**62), []
    for task in panes.all_windows():
        queue.evict_before(windows.panes_of(task.window)[0])
        for pane in [pane for pane, _ in task.panes if pane > newest]:
            queue.push(pane, merged[pane])
        newest = max(newest, task.panes[-1][0])
        answers.append(plan.window_query(case.rows.schema).stamp(task.window, queue.answer()))
    return together(plan, case, answers)


def _queue(rng: Rng, plan: Plan, merged: Mapping[int, pa.Table]) -> PaneQueue:
    query, own = plan.query, None
    if merged and isinstance(query, QueueQuery) and rng.random() < 0.7:
        own = query.queue(next(iter(merged.values())).schema, plan.windows.panes_per_window)
    return TwoStacks(query) if own is None else own


def _open_panes(rng: Rng, plan: Plan, case: Case) -> OpenPanes[pa.Table]:
    """Return the panes as several workers lift them, each its share of the rows."""
    panes: OpenPanes[pa.Table] = OpenPanes.empty(plan.windows)
    for share in shares(rng, case.rows):
        worker = PaneQuery(plan.query, plan.gate, buffer_rows=int(rng.choice([1, 7, 100, 10**6])))
        for batch in share:
            worker.absorb(batch)
        panes = panes.add((part.pane, part.partial) for part in worker.close().partials)
    return panes


def shares(rng: Rng, rows: pa.Table) -> list[list[pa.RecordBatch]]:
    """Return the rows dealt to one or several workers, in batches of any size."""
    owners = rng.integers(0, int(rng.integers(1, 5)), rows.num_rows)
    size = int(rng.choice([max(1, rows.num_rows // 6), 10**6]))
    return [rows.filter(pa.array(owners == owner)).to_batches(size) for owner in np.unique(owners)]


def by_batch(case: Case) -> pa.Table:
    """The functions that Spark calls for a static DataFrame, without Spark: partials as bytes, runs of windows, parts of keys."""
    rng, plan = case.rng(4), objects.plan(case)
    run = int(rng.choice([plan.windows.overlap * RUN_OVERLAPS, 1, 3]))
    divisible = isinstance(plan.query, DivisibleQuery) and plan.query.divisible(case.rows.schema)
    parts = int(rng.integers(1, 4)) if divisible else 1
    lift = _LiftPanes(plan.query, plan.gate, run, "drop", parts)
    lifted = [one for share in shares(rng, case.rows) for batch in lift(iter(share)) for one in batch.to_pylist()]
    routed: dict[int, list[dict[str, Any]]] = {}
    for one in lifted:
        for number in range(one["first"], one["last"] + 1, parts):
            routed.setdefault(number, []).append({"run": number, "panes": one["panes"], "partial": one["partial"]})
    answer = _AnswerRuns(plan.window_query(case.rows.schema), run, parts)
    rows = pa.Table.from_pylist([one for number in sorted(routed) for one in routed[number]], _ROUTED)
    answers = [pa.Table.from_batches([one]) for one in answer(iter(rows.to_batches(2)))]
    # The parts of a run are answered by different tasks, one after the other here.
    answers.sort(key=lambda one: one.column("window_start")[0].value if one.num_rows else -(2**62))
    return together(plan, case, answers)


_ROUTED = pa.schema([("run", pa.int64()), ("panes", pa.list_(pa.int64())), ("partial", pa.binary())])


def together(plan: Plan, case: Case, answers: Sequence[pa.Table]) -> pa.Table:
    """Return all answers as one table, of the schema that is promised."""
    return pa.concat_tables([plan.output_schema(case.rows.schema).empty_table(), *answers]).combine_chunks()


WINDOWED: dict[str, Callable[[Case], pa.Table]] = {
    "local": by_local,
    "tree": by_tree,
    "worker": by_worker,
    "queue": by_queue,
    "batch": by_batch,
}
