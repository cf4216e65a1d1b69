"""Answers of windows as changes: the rows that each version adds to the version before it, and those that it removes.

A sink that can only append cannot replace a version; it gets DEL for rows that are not in the answer any more, and ADD
for new ones, as the updates of a continuous skyline. The first version of a window is added as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from skypane.operators.open_panes import P, WindowTask
from skypane.operators.window_query import ACTION, REMOVED, WindowAnswer, WindowQuery, WindowWorker

Load = Callable[[P], pa.Table]


def answers_of(worker: WindowWorker, tasks: Sequence[WindowTask[P]], load: Load[P]) -> Iterator[WindowAnswer]:
    """Yield the answers of windows in ascending order: whole versions, or changes if the query has these."""
    answers = worker.answers(tasks, load)
    return _changes(worker, tasks, answers, load) if worker.query.changes else answers


def _changes(
    worker: WindowWorker, tasks: Sequence[WindowTask[P]], answers: Iterable[WindowAnswer], load: Load[P]
) -> Iterator[WindowAnswer]:
    before = [task.replaced for task in tasks if task.replaced is not None]
    old: dict[int, pa.Table] = {}
    # A pane may have fewer partials in early versions, which are older: one worker would keep its first merge of it.
    for _, alike in groupby(before, lambda task: task.early):
        same = [*alike]
        old |= {answer.window: answer.rows for answer in worker.anew(len(same)).answers(same, load)}
    for answer in answers:
        replaced = old.pop(answer.window, None)
        yield answer if replaced is None else replace(answer, rows=_between(worker.query, replaced, answer.rows))


def _between(query: WindowQuery, old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the changes that turn `old` into `new`, as multisets of rows; an early row differs from one that is not."""
    own = query.own_columns(new.schema)
    was, now = old.select(own), new.select(own)
    gone = old.take(beyond(was, now))
    at = gone.schema.get_field_index(ACTION)
    gone = gone.set_column(at, gone.schema.field(at), pa.repeat(pa.scalar(REMOVED), gone.num_rows))
    return pa.concat_tables([gone, new.take(beyond(now, was))])


def beyond(rows: pa.Table, others: pa.Table) -> pa.Array:
    """Return the indices of the rows that are not among `others`; each of these accounts for one row."""
    left = Counter(_keys(others))
    found = []
    for index, key in enumerate(_keys(rows)):
        if left[key]:
            left[key] -= 1
        else:
            found.append(index)
    return pa.array(found, pa.int64())


def _keys(rows: pa.Table) -> list[str]:
    """Return a text for each row, equal for equal rows: NaN equals itself, as in Spark's comparisons of rows."""
    return list(map(repr, zip(*(column.to_pylist() for column in rows.columns), strict=True)))
