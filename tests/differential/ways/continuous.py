"""Ways to the updates of a continuous skyline: rows in, (m, 3) time, ADD or DEL, id out, up to a clock after all stays.

All of them take the rows in steps of time, cut at random, as an engine does; how they are stored meanwhile is what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from tests.differential import objects
from tests.differential.case import ID, Case, IntArray
from tests.differential.definition.continuous import in_order
from tests.differential.definition.values import groups
from tests.differential.definition.windows import times, usable
from tests.differential.ways.windowed import events, parts

from skypane.operators.fronts import (
    ContinuousSkyline,
    Front,
    FrontContents,
    FrontOperator,
    GroupedFronts,
    NewPoints,
    RowFront,
    Updates,
    stays,
)
from skypane.operators.fronts.rescalable_front import RescalableFront
from skypane.operators.fronts.resident_fronts import ResidentFront
from skypane.operators.fronts.sharded_fronts import ShardedFront
from skypane.operators.fronts.shards import UNSHARDED, ShardPlan
from skypane.runtime import local

Rng = np.random.Generator


class Emitted(NamedTuple):
    """The updates before a clock, in order, (m, 3)."""

    updates: IntArray
    until: int


class OutOfOrderError(AssertionError):
    """Updates that were emitted out of order, or with other rows than those that came."""


class _Stream:
    """The usable rows of a case as points, in steps of time."""

    def __init__(self, case: Case) -> None:
        query = objects.query(case.spec, case.rows.schema)
        assert isinstance(query, ContinuousSkyline)
        self.query = query
        self.rows = case.rows.take(pa.array(usable(case.rows, case.spec)))
        self.times = times(self.rows)
        self.window = query.window
        self.ids = self.rows.column(ID).to_numpy().astype(np.int64)
        self.points = query.preference.points(self.rows).values
        self.groups = groups(self.rows, query.groups)
        self.end = int(self.times.max(initial=0)) + self.window + 1

    def steps(self, rng: Rng) -> Iterator[tuple[IntArray, int]]:
        """Yield the rows of each step, in any order, and the clock after it."""
        low, high = int(self.times.min(initial=0)), int(self.times.max(initial=0)) + 1
        few = int(rng.choice([0, 1, 3, 10, 40]))
        clocks = np.unique(rng.integers(low, high + 1, few))
        if rng.random() < 0.2:
            clocks = clocks - clocks % max(1, (high - low) // 7)
        before = -(2**61)
        for clock in [*np.unique(clocks[clocks > low]).tolist(), self.end]:
            yield rng.permutation(np.flatnonzero((before <= self.times) & (self.times < clock))), clock
            before = clock

    def arrivals(self, which: IntArray) -> NewPoints:
        groups = self.groups[which] if len(self.query.groups) else None
        return NewPoints(self.points[which], self.times[which], which.astype(np.int64), groups)

    def emitted(self, some: list[Updates]) -> Emitted:
        """Return the updates of all steps; OutOfOrderError if they did not come in order."""
        moments = np.concatenate([one.times for one in some])
        actions = np.concatenate([one.actions for one in some]).astype(np.int64)
        rows = np.concatenate([one.rows for one in some])
        _check_order(moments, actions)
        return Emitted(in_order(np.column_stack([moments, actions, self.ids[rows]]).astype(np.int64)), self.end)


def _check_order(moments: IntArray, actions: IntArray) -> None:
    order = np.lexsort((actions, moments))
    if not (np.array_equal(moments[order], moments) and np.array_equal(actions[order], actions)):
        raise OutOfOrderError("updates are not emitted in order of time, DEL before ADD")


def by_front(case: Case) -> Emitted:
    """A front in the driver, remembered and gone on with between steps."""
    rng, stream = case.rng(5), _Stream(case)
    form = GroupedFronts if len(stream.query.groups) else Front
    front: FrontOperator = form(stream.points.shape[1], stream.window)
    emitted = []
    for which, clock in stream.steps(rng):
        emitted.append(front.step(stream.arrivals(which), clock))
        if rng.random() < 0.3:
            front = form.restore(front.snapshot(), stream.window)
    return stream.emitted(emitted)


def by_shards(case: Case) -> Emitted:
    """Points in shards with or without state, whose number changes from step to step."""
    rng, stream = case.rng(6), _Stream(case)
    if len(stream.query.groups):
        return _in_forms(rng, stream, whole=0.0)
    none = FrontContents.empty(stream.points.shape[1], grouped=False)
    front: ResidentFront | ShardedFront
    resident = rng.random() < 0.5
    front = ResidentFront.restore(none, stream.window) if resident else ShardedFront.restore(none, stream.window)
    emitted = []
    for which, clock in stream.steps(rng):
        front.rescale(ShardPlan(int(rng.integers(1, 5)), in_place=map if resident else None))
        emitted.append(front.step(stream.arrivals(which), clock))
    return stream.emitted(emitted)


def by_points(case: Case) -> Emitted:
    """Whole at one step, in shards at another; or all at once, as the history of a table."""
    rng, stream = case.rng(7), _Stream(case)
    if rng.random() < 0.7:
        return _in_forms(rng, stream, whole=0.5)
    grouped = stream.groups if len(stream.query.groups) else None
    found = stays(stream.points, stream.times, stream.window, grouped)
    none = np.zeros(len(found.rows), np.int64)
    both = [(found.starts, none + 1), (found.ends, none - 1)]
    updates = np.concatenate([np.column_stack([when, action, stream.ids[found.rows]]) for when, action in both])
    return Emitted(in_order(updates), stream.end)


def _shards(rng: Rng) -> ShardPlan:
    return ShardPlan(int(rng.integers(1, 5)), in_place=map if rng.random() < 0.5 else None)


def _in_forms(rng: Rng, stream: _Stream, whole: float) -> Emitted:
    grouped = len(stream.query.groups) > 0
    front, emitted = RescalableFront(stream.points.shape[1], stream.window, grouped=grouped), []
    for which, clock in stream.steps(rng):
        front.rescale(UNSHARDED if rng.random() < whole else _shards(rng))
        emitted.append(front.step(stream.arrivals(which), clock))
        if rng.random() < 0.2:
            front = RescalableFront.restore(front.snapshot(), stream.window)
    return stream.emitted(emitted)


def by_rows(case: Case) -> Emitted:
    """Tables: what a pane lifts, in parts, goes to a front of rows, which is begun again from what it has stored."""
    rng, stream = case.rng(8), _Stream(case)
    front = RowFront(stream.query, stream.rows.schema)
    emitted = []
    for which, clock in stream.steps(rng):
        rows = stream.rows.take(pa.array(which))
        if rng.random() < 0.5:
            rows = stream.query.combine([stream.query.lift(part) for part in parts(rng, rows)])
        emitted.append(front.step(rows, clock, UNSHARDED if rng.random() < 0.6 else _shards(rng)))
        if rng.random() < 0.3:
            front = RowFront.of(stream.query, stream.rows.schema, [front.stored()], clock)
    return Emitted(from_tables(case, emitted), stream.end)


def by_local(case: Case) -> Emitted:
    """The whole system in one process, batch by batch, up to the end of the last pane with a row."""
    plan = objects.plan(case)
    updates = [one.rows for one in local.run_continuous(plan, events(case)) if one.rows is not None]  # type: ignore[arg-type]
    newest = int(times(case.rows.take(pa.array(usable(case.rows, case.spec)))).max(initial=-(2**62)))
    return Emitted(from_tables(case, updates), plan.windows.pane_end(plan.windows.pane_at(newest)))


def from_tables(case: Case, emitted: list[pa.Table]) -> IntArray:
    """Return updates from tables of them; OutOfOrderError if rows are not those that came, or in another order."""
    if not emitted:
        return np.empty((0, 3), np.int64)
    table = pa.concat_tables(emitted).combine_chunks()
    moments = table.column("action_time").cast(pa.int64()).to_numpy()
    actions = np.where(np.array(table.column("action").to_pylist(), object) == "ADD", 1, -1).astype(np.int64)
    _check_order(moments, actions)
    ids = table.column(ID).to_numpy().astype(np.int64)
    known = case.rows.sort_by(ID)
    came = known.take(pa.array(np.searchsorted(known.column(ID).to_numpy(), ids)))
    if not came.drop_columns(_floats(came)).equals(table.select(came.column_names).drop_columns(_floats(came))):
        raise OutOfOrderError("rows are emitted that are not those that came")
    return in_order(np.column_stack([moments, actions, ids]).astype(np.int64))


def _floats(rows: pa.Table) -> list[str]:
    """Return the columns in which NaN may be, which is not equal to itself."""
    return [field.name for field in rows.schema if pa.types.is_floating(field.type) or pa.types.is_nested(field.type)]


CONTINUOUS: dict[str, Callable[[Case], Emitted]] = {
    "front": by_front,
    "shards": by_shards,
    "points": by_points,
    "rows": by_rows,
    "local": by_local,
}
