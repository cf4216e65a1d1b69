"""Ways to divide the work of one window among tasks whose rows have keys; each gives the same answer.

as read    rows are lifted where they are read, in even parts, and the partials are divided by the hash of the key, as
           the engine does
hash       rows are sent by the hash of the key, so that a task lifts and answers all rows of its keys
cut        rows are sent by a ring on which frequent keys are cut into sub-keys (paper 3), and the partials of a key that
           was cut are merged where its first sub-key belongs
in parts   as read, but the partials of these keys are merged pane by pane on different tasks before the key's own task
           gets them
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from skypane.control.keys import FrequencyAware, HashRing, KeyPlan, SpaceSaving, basic
from skypane.operators.aggregates.stable_hashes import key_hashes
from skypane.operators.query import Query, lift_panes
from skypane.types import BoolArray, FloatArray, IntArray
from skypane.windows import Windows

KEY: Final = "key"
CUT: Final = 100
"""Keys that may be cut, as in paper 3."""
ROOM: Final = 1_000
"""Keys that are counted to find them."""

P = ParamSpec("P")
T = TypeVar("T")
Partials: TypeAlias = dict[int, list[pa.Table]]
"""The partials of each pane."""


@dataclass(frozen=True)
class Divided:
    """What the tasks of a way have done.

    rows      rows lifted by each task
    merged    bytes of the partials from which each task answers the window
    lifting   CPU seconds of each task until its panes are lifted and divided
    merging   CPU seconds of each task in which partials of several tasks are merged
    lowering  CPU seconds of each task in which the window is answered from a partial for each pane
    answer    the answer of the window
    """

    rows: IntArray
    merged: IntArray
    lifting: FloatArray
    merging: FloatArray
    lowering: FloatArray
    answer: pa.Table

    @property
    def path(self) -> float:
        """CPU seconds of the slowest task of each step."""
        return float(self.lifting.max() + self.merging.max() + self.lowering.max())

    @property
    def share(self) -> float:
        """Share of the largest task in the bytes from which the window is answered."""
        return float(self.merged.max() / self.merged.sum())


def clocked(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> tuple[float, T]:
    """Return the CPU seconds of a call, and its result."""
    began = time.process_time()
    result = call(*given, **named)
    return time.process_time() - began, result


def hashed(table: pa.Table) -> IntArray:
    """Return the hash of each row's key."""
    return key_hashes(table, (KEY,))


def plan_of(hashes: IntArray, n: int, most: int = CUT) -> KeyPlan:
    """Return where rows go by the frequencies of the same rows: the best that a forecast can be."""
    sketch = SpaceSaving(ROOM)
    return FrequencyAware(most).decide(sketch.observe(sketch.init(), hashes), HashRing(tuple(range(n))))


def as_read(query: Query, rows: pa.Table, windows: Windows, n: int) -> Divided:
    """Lift even parts of the rows, and divide partials by the hash of the key; each task reads all partials."""
    lifting, lifted = _lifted(query, rows, windows, np.arange(rows.num_rows) % n, n)
    together = _together(lifted)
    steps = [clocked(_parts, query, together, part, n) for part in range(n)]
    return _answered(query, _counts(np.arange(rows.num_rows) % n, n), lifting, steps)


def by_hash(query: Query, rows: pa.Table, windows: Windows, n: int) -> Divided:
    """Send rows by the hash of the key; nothing is left to merge."""
    nodes = basic(hashed(rows), n)
    lifting, lifted = _lifted(query, rows, windows, nodes, n)
    steps = [(0.0, {pane: tables[0] for pane, tables in one.items()}) for one in lifted]
    return _answered(query, _counts(nodes, n), lifting, steps)


def by_cut_keys(query: Query, rows: pa.Table, windows: Windows, n: int) -> Divided:
    """Send rows by the ring with frequent keys cut, and merge these keys' partials at the nodes of the keys."""
    plan = plan_of(hashed(rows), n)
    nodes = plan.route(hashed(rows))
    lifting, lifted = _lifted(query, rows, windows, nodes, n)
    received: list[Partials] = [{} for _ in range(n)]
    for task, panes in enumerate(lifted):
        spent, sent = clocked(_sent, panes, plan)
        lifting[task] += spent
        for pane, owner, table in sent:
            received[task if owner < 0 else owner].setdefault(pane, []).append(table)
    steps = [clocked(_merged, query, panes) for panes in received]
    return _answered(query, _counts(nodes, n), lifting, steps)


def in_parts(query: Query, rows: pa.Table, windows: Windows, n: int) -> Divided:
    """Lift even parts; merge the partials of frequent keys pane by pane on different tasks, then the rest as read."""
    frequent = np.array(sorted(plan_of(hashed(rows), n).parts), np.int64)
    lifting, lifted = _lifted(query, rows, windows, np.arange(rows.num_rows) % n, n)
    together = _together(lifted)
    merging = np.zeros(n)
    first: Partials = {}
    for place, (pane, tables) in enumerate(together.items()):
        spent, merged = clocked(_frequent_merged, query, tables, frequent)
        merging[place % n] += spent
        first[pane] = merged
    steps = [clocked(_parts, query, first, part, n) for part in range(n)]
    # The second step begins when the slowest task of the first one is done
    steps = [(spent + float(merging.max()), panes) for spent, panes in steps]
    return _answered(query, _counts(np.arange(rows.num_rows) % n, n), lifting, steps)


WAYS: Final[dict[str, Callable[[Query, pa.Table, Windows, int], Divided]]] = {
    "as read": as_read,
    "hash": by_hash,
    "cut": by_cut_keys,
    "in parts": in_parts,
}


def _lifted(
    query: Query, rows: pa.Table, windows: Windows, nodes: IntArray, n: int
) -> tuple[FloatArray, list[Partials]]:
    """Return the CPU seconds and the partials of each task, which lifts the rows of its node."""
    order = np.argsort(nodes, kind="stable")
    edges = np.searchsorted(nodes[order], np.arange(n + 1)).tolist()
    parts = [rows.take(pa.array(order[begin:end])).combine_chunks() for begin, end in pairwise(edges)]
    done = [clocked(_panes, query, part, windows) for part in parts]
    return np.array([spent for spent, _ in done]), [panes for _, panes in done]


def _panes(query: Query, rows: pa.Table, windows: Windows) -> Partials:
    """Return the partial of each pane of rows in the order of time."""
    if not rows.num_rows:
        return {}
    panes = windows.panes_at(rows["at"].cast(pa.int64()).to_numpy())
    starts = np.flatnonzero(np.diff(panes, prepend=panes[:1] - 1))
    ends = np.append(starts[1:], rows.num_rows)
    each = [rows.slice(begin, end - begin) for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return {pane: [one] for pane, one in zip(panes[starts].tolist(), lift_panes(query, each), strict=True)}


def _together(lifted: Sequence[Partials]) -> Partials:
    """Return the partials of all tasks, by pane."""
    panes = sorted({pane for one in lifted for pane in one})
    return {pane: [table for one in lifted for table in one.get(pane, ())] for pane in panes}


def _parts(query: Query, panes: Partials, part: int, n: int) -> dict[int, pa.Table]:
    """Return a partial for each pane, of the keys of a part."""
    return _merged(query, {pane: [_part(table, part, n) for table in tables] for pane, tables in panes.items()})


def _part(table: pa.Table, part: int, n: int) -> pa.Table:
    return table.filter(pa.array(basic(hashed(table), n) == part))


def _merged(query: Query, panes: Partials) -> dict[int, pa.Table]:
    return {pane: query.combine(tables) for pane, tables in sorted(panes.items())}


def _sent(panes: Partials, plan: KeyPlan) -> list[tuple[int, int, pa.Table]]:
    """Return pane, node and partial of what a task sends; the node is negative for what it keeps."""
    hot = np.array(sorted(plan.parts), np.int64)
    found = []
    for pane, tables in panes.items():
        for table in tables:
            keys = hashed(table)
            owners = np.where(_among(keys, hot), plan.ring.of(keys), -1)
            found += [(pane, node, table.filter(pa.array(owners == node))) for node in np.unique(owners).tolist()]
    return found


def _frequent_merged(query: Query, tables: Sequence[pa.Table], frequent: IntArray) -> list[pa.Table]:
    """Return partials of a pane in which each frequent key occurs once."""
    kept, hot = [], []
    for table in tables:
        chosen = _among(hashed(table), frequent)
        kept.append(table.filter(pa.array(~chosen)))
        hot.append(table.filter(pa.array(chosen)))
    return [*kept, query.combine(hot)]


def _among(keys: IntArray, some: IntArray) -> BoolArray:
    return np.isin(keys, some)


def _lowered(query: Query, panes: dict[int, pa.Table]) -> pa.Table:
    return query.lower(query.combine([*panes.values()]))


def _answered(
    query: Query, rows: IntArray, lifting: FloatArray, steps: Sequence[tuple[float, dict[int, pa.Table]]]
) -> Divided:
    """Answer the window: each task from its partials, one for a pane."""
    done = [clocked(_lowered, query, panes) for _, panes in steps if panes]
    return Divided(
        rows,
        np.array([sum(int(table.nbytes) for table in panes.values()) for _, panes in steps]),
        lifting,
        np.array([spent for spent, _ in steps]),
        np.array([spent for spent, _ in done]),
        pa.concat_tables([answer for _, answer in done]),
    )


def _counts(nodes: IntArray, n: int) -> IntArray:
    return np.bincount(nodes, minlength=n)
