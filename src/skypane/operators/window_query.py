"""The window-level query (WLQ): computes the answers of windows from partials of panes; windows share merges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from skypane.operators.memory_estimates import step_bytes
from skypane.operators.open_panes import WindowTask
from skypane.operators.query import FarSightedQueue, PaneQueue, Query, QueueQuery, StayingQueue
from skypane.operators.stay_columns import STAY_COLUMNS, stay_fields, stay_table
from skypane.operators.stays import WindowStays, numbered
from skypane.types import ConfigError, IntArray, MemoryLimitError
from skypane.windows import Windows

WINDOW_START = "window_start"
WINDOW_END = "window_end"
VERSION = "version"
EARLY = "early"
EMPTY = "empty"
ACTION = "action"
ADDED, REMOVED = "ADD", "DEL"

P = TypeVar("P")
"""A partial, or a reference to one."""

Ask: TypeAlias = Callable[[int], None]
"""Called before a step with the bytes that it takes; raises an error if there is not enough memory."""


def no_limit(more: int) -> None:
    """Accept any number of bytes."""


FEW_PANES = 8
SOME_PANES = 64
FEW_ROWS = 4_096
"""One direct merge per window is faster than shared merges with few panes, or with some panes and few rows."""

LEAST_AT_ONCE = 64
"""Number of windows whose stays are computed at once, if they are not longer: stays end with them."""


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The rows of one window, stamped with its bounds; version n replaces version n - 1 of the same window.

    early   whether the window is answered before its end
    """

    window: int
    rows: pa.Table
    version: int = 0
    early: bool = False


@dataclass(frozen=True, slots=True)
class StayAnswer:
    """The rows of consecutive windows as stays, stamped with their windows.

    windows   number and row count of each window, in order
    """

    windows: tuple[tuple[int, int], ...]
    rows: pa.Table


class TwoStacks:
    """A queue of partials that maintains the combination of all of them.

    This is the two-stack queue of sliding-window aggregation: it costs about three merges per pane, however many panes
    a window has, and combine need not be invertible.

        evict here <- [ front: suffix combinations ][ back: one running combination ] <- push here
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        #: (pane, combination of this pane and all younger ones in front), the oldest pane last
        self._front: list[tuple[int, pa.Table]] = []
        self._back: list[tuple[int, pa.Table]] = []
        self._back_all: pa.Table | None = None

    def push(self, pane: int, partial: pa.Table) -> None:
        self._back.append((pane, partial))
        self._back_all = partial if self._back_all is None else self._query.combine([self._back_all, partial])

    def evict_before(self, pane: int) -> None:
        """Remove every pane older than `pane`."""
        if self._back and not self._front_reaches(pane):
            self._flip(pane)
        while self._front and self._front[-1][0] < pane:
            self._front.pop()

    def answer(self) -> pa.Table:
        return self._query.lower(self.combined())

    def combined(self) -> pa.Table:
        """Return the combination of all panes."""
        parts = [self._front[-1][1]] if self._front else []
        if self._back_all is not None:
            parts.append(self._back_all)
        return self._query.combine(parts)

    def _front_reaches(self, pane: int) -> bool:
        """Return whether the front keeps a pane after the eviction, or no pane of the back is evicted."""
        return bool(self._front and self._front[0][0] >= pane) or self._back[0][0] >= pane

    def _flip(self, pane: int) -> None:
        self._front = []
        for index, partial in reversed(self._back):
            if index < pane:
                break
            below = [self._front[-1][1]] if self._front else []
            self._front.append((index, self._query.combine([partial, *below])))
        self._back, self._back_all = [], None


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A query over windows.

    zone        time zone of the window bounds in answers (None: without time zone)
    versioned   whether windows may be answered again: answers then have the columns `version` and `empty`
    changes     whether versions are answered as changes: answers then have the column `action` instead of `empty`
    early       whether windows are answered before their end, too: versions then have the column `early`
    hidden      columns of the query's rows that answers leave out
    stays       whether answers are written as stays (stay_columns.py)
    """

    query: Query
    windows: Windows
    zone: str | None
    versioned: bool = False
    changes: bool = False
    early: bool = False
    hidden: tuple[str, ...] = ()
    stays: bool = False

    def worker(self, ask: Ask = no_limit, windows: int | None = None) -> WindowWorker:
        """Return a new worker, which answers so many windows in all; None: any number."""
        return WindowWorker(self, ask, windows)

    def compares_once(self, schema: pa.Schema) -> bool:
        """Return whether each row of `schema` is compared once, however many windows hold it."""
        return isinstance(self._queue(schema), FarSightedQueue)

    def keeps_merges(self, schema: pa.Schema) -> bool:
        """Return whether a worker that has answered windows of rows of `schema` adds only new panes for the next ones."""
        return self.windows.overlap > 1 and self._queue(schema) is not None

    def _queue(self, schema: pa.Schema) -> PaneQueue | None:
        """Return a queue of the query's own for rows of `schema`, if it has one."""
        if not isinstance(self.query, QueueQuery):
            return None
        return self.query.queue(self.query.lift(schema.empty_table()).schema, self.windows.panes_per_window)

    def stamp(self, window: int, rows: pa.Table, version: int = 0, *, early: bool = False) -> pa.Table:
        """Return `rows` with the window's bounds, and the version if windows have versions, as their first columns."""
        rows = self.shown(rows)
        kind = pa.timestamp("us", self.zone)
        columns = [pa.array(np.full(rows.num_rows, bound)).view(kind) for bound in self.windows.bounds(window)]
        fields = [pa.field(WINDOW_START, kind), pa.field(WINDOW_END, kind)]
        if not self.versioned:
            schema = pa.schema([*fields, *rows.schema])
            return pa.Table.from_arrays([*columns, *rows.columns], schema=schema)
        columns.append(pa.array(np.full(rows.num_rows, version, np.int32)))
        fields.append(pa.field(VERSION, pa.int32()))
        flags: dict[str, str | bool] = {EARLY: early} if self.early else {}
        flags |= {ACTION: ADDED} if self.changes else {EMPTY: False}
        for name, value in flags.items():
            columns.append(pa.repeat(pa.scalar(value), rows.num_rows))
            fields.append(pa.field(name, columns[-1].type))
        # The row of an empty answer has nulls in all columns of the query.
        schema = pa.schema([*fields, *(field.with_nullable(True) for field in rows.schema)])  # noqa: FBT003
        return pa.Table.from_arrays([*columns, *rows.columns], schema=schema)

    def shown(self, rows: pa.Table) -> pa.Table:
        """Return `rows` without the columns that answers leave out."""
        return rows.drop_columns([name for name in self.hidden if name in rows.schema.names]) if self.hidden else rows

    def stamp_stays(self, rows: pa.Table, first: IntArray, last: IntArray) -> pa.Table:
        """Return `rows`, shown, as the stays from the windows `first` to the windows `last`."""
        rows, windows = self.shown(rows), self.windows
        starts, lasts = windows.offset + first * windows.slide, windows.offset + last * windows.slide
        schema = pa.schema([*stay_fields(self.zone), *rows.schema])
        return stay_table(rows, starts, lasts, lasts + windows.length, last - first + 1, schema)

    @property
    def _added(self) -> tuple[str, ...]:
        """The columns that come before those of the query."""
        if self.stays:
            return STAY_COLUMNS
        if not self.versioned:
            return (WINDOW_START, WINDOW_END)
        early = (EARLY,) if self.early else ()
        return (WINDOW_START, WINDOW_END, VERSION, *early, ACTION if self.changes else EMPTY)

    def own_columns(self, schema: pa.Schema) -> list[str]:
        """Return the columns of the query in answers of `schema`, and whether a row is early."""
        return [*([EARLY] if self.early else []), *schema.names[len(self._added) :]]

    def comparable_columns(self, schema: pa.Schema) -> list[str]:
        """Return the columns of answers of `schema` that are the same in each version, or window, that holds a row.

        Versions differ in their numbers, and a stay stands for windows of different bounds; so a filter of rows by these
        columns leaves the same rows whether it is applied to versions, to their changes, to windows or to stays.
        """
        bounds = [] if self.stays else [WINDOW_START, WINDOW_END]
        return [*bounds, *schema.names[len(self._added) :]]

    def nothing(self, task: WindowTask[P], schema: pa.Schema) -> pa.Table:
        """Return the one row of a version without rows, in the schema of the answers: readers would not see it else."""
        start, end = self.windows.bounds(task.window)
        known = {WINDOW_START: start, WINDOW_END: end, VERSION: task.version, EARLY: task.early, EMPTY: True}
        columns = [
            pa.nulls(1, field.type) if field.name not in known else _scalar(known[field.name], field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers when the input rows have `schema`."""
        answers = self.query.output_schema(schema)
        # Spark's column names are case-insensitive.
        added = self._added
        clashes = [name for name in answers.names if name.lower() in added]
        if clashes:
            names = f"{', '.join(added[:-1])} and {added[-1]}"
            raise ConfigError(f"the answers add columns {names}: rename {', '.join(clashes)}")
        none = np.empty(0, np.int64)
        stamped = (
            self.stamp_stays(answers.empty_table(), none, none) if self.stays else self.stamp(0, answers.empty_table())
        )
        return stamped.schema


class WindowWorker:
    """One WLQ worker: answers windows in window order and caches the merges that the next window can reuse.

    The cache does not affect answers: a new worker gives the same ones.
    """

    def __init__(self, query: WindowQuery, ask: Ask = no_limit, windows: int | None = None) -> None:
        self._query = query
        self._ask = ask
        self._windows = windows
        self._queue: PaneQueue | None = None
        #: whether the query provides the queue
        self._own = False
        self._newest: int | None = None
        #: the panes of the last windows, each merged into one table
        self._panes: dict[int, pa.Table] = {}
        #: the bytes of all these panes
        self._kept = 0
        #: the estimated bytes of a step over each pane, and over all
        self._steps: dict[int, int] = {}
        self._step = 0

    @property
    def query(self) -> WindowQuery:
        return self._query

    @property
    def newest(self) -> int | None:
        """The newest pane whose rows it has merged; None if it has no merges."""
        return self._newest

    def anew(self, windows: int | None = None) -> WindowWorker:
        """Return a worker of the same query that has no merges yet, for so many windows; None: any number."""
        return WindowWorker(self._query, self._ask, windows)

    def answer(self, task: WindowTask[P], load: Callable[[P], pa.Table]) -> WindowAnswer:
        """Return the answer of a window younger than all before; `load` returns the table of a partial."""
        return next(self.answers([task], load))

    def answers(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[WindowAnswer]:
        """Yield the answers of windows in ascending order, all younger than those answered before."""
        at_once = self._query.windows.overlap
        for begin in range(0, len(tasks), at_once):
            some = tasks[begin : begin + at_once]
            for task, rows in zip(some, self._rows_of(some, load), strict=True):
                stamped = self._query.stamp(task.window, rows, task.version, early=task.early)
                yield WindowAnswer(task.window, stamped, task.version, task.early)

    def stays(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[StayAnswer]:
        """Yield the answers of answers() as stays, each of which ends with the windows that are answered at once."""
        at_once = max(self._query.windows.overlap, LEAST_AT_ONCE)
        for begin in range(0, len(tasks), at_once):
            yield from self._stays_at_once(tasks[begin : begin + at_once], load)

    def _stays_at_once(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[StayAnswer]:
        """Yield the stays of windows; of fewer at once if there is no memory for the panes of all, as answers() does."""
        overlap = self._query.windows.overlap
        try:
            known = self._known_stays(tasks, load)
        except MemoryLimitError:
            if len(tasks) <= overlap:
                raise
            for begin in range(0, len(tasks), overlap):
                yield from self._stays_at_once(tasks[begin : begin + overlap], load)
            return
        if known is None:
            yield from self._found_stays(tasks, load)
        else:
            yield self._stay_answer(tasks, *known)

    def _stay_answer(self, tasks: Sequence[WindowTask[P]], rows: pa.Table, stays: WindowStays) -> StayAnswer:
        windows = np.array([task.window for task in tasks], np.int64)
        counts = zip(windows.tolist(), stays.counts(len(tasks)).tolist(), strict=True)
        return StayAnswer(tuple(counts), self._query.stamp_stays(rows, windows[stays.first], windows[stays.last]))

    def _known_stays(
        self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]
    ) -> tuple[pa.Table, WindowStays] | None:
        """Return the rows of windows and their stays, if the queue knows them."""
        self._load(tasks[:1], load)
        queue = self._queue = self._queue or self._new_queue()
        if self._windows == 1 or not (self._sharing_pays() and isinstance(queue, StayingQueue) and queue.knows_stays):
            return None
        self._load(tasks, load)
        self._ask(self._step)
        self._push(queue)
        return queue.stays([self._query.windows.panes_of(task.window)[0] for task in tasks])

    def _found_stays(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[StayAnswer]:
        """Yield the stays of windows, found by comparing the answers: those of all, or of as many as there is memory for."""
        at_once, begin, size = self._query.windows.overlap, 0, 0
        answers: list[pa.Table] = []
        each = (self._rows_of(tasks[first : first + at_once], load) for first in range(0, len(tasks), at_once))
        for place, found in enumerate(chain.from_iterable(each)):
            rows = self._query.shown(found)
            size += int(rows.nbytes)
            if answers and not self._fits(2 * size):
                yield self._compared(tasks[begin:place], answers)
                answers, begin, size = [], place, int(rows.nbytes)
            answers.append(rows)
        yield self._compared(tasks[begin:], answers)

    def _compared(self, tasks: Sequence[WindowTask[P]], answers: Sequence[pa.Table]) -> StayAnswer:
        rows, members = numbered(answers)
        stays = WindowStays.of_members(members, [task.window for task in tasks])
        return self._stay_answer(tasks, rows.take(pa.array(stays.numbers)), stays)

    def _fits(self, more: int) -> bool:
        """Return whether there is memory for so many bytes."""
        try:
            self._ask(more)
        except MemoryLimitError:
            return False
        return True

    def _rows_of(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows of each window; compute several windows at once if the queue supports it."""
        self._load(tasks[:1], load)
        queue = self._queue = self._queue or self._new_queue()
        if self._windows == 1:
            yield self._once(tasks[0].window, queue)
            return
        if not self._sharing_pays() or not isinstance(queue, FarSightedQueue):
            for task in tasks:
                self._load([task], load)
                yield self._shared(task.window, queue) if self._sharing_pays() else self._direct()
            return
        self._load(tasks, load)
        self._ask(self._step)
        self._push(queue)
        yield from queue.answers([self._query.windows.panes_of(task.window)[0] for task in tasks])

    def _load(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> None:
        """Load the panes of these windows and drop all others."""
        known = self._panes
        self._panes = {
            pane: known[pane] if pane in known else self._pane(partials, load)
            for pane, partials in sorted({pane: of for task in tasks for pane, of in task.panes}.items())
        }
        for pane in known.keys() - self._panes.keys():
            self._kept -= int(known[pane].nbytes)
            self._step -= self._steps.pop(pane)
        for pane in self._panes.keys() - known.keys():
            one = self._panes[pane]
            self._steps[pane] = step_bytes([one])
            self._kept += int(one.nbytes)
            self._step += self._steps[pane]

    def _new_queue(self) -> PaneQueue:
        query, one = self._query.query, next(iter(self._panes.values()))
        own = query.queue(one.schema, self._query.windows.panes_per_window) if isinstance(query, QueueQuery) else None
        self._own = own is not None
        return TwoStacks(query) if own is None else own

    def _sharing_pays(self) -> bool:
        length = self._query.windows.panes_per_window
        if self._own:
            return self._query.windows.overlap > 1
        if self._query.windows.panes_per_slide > 1:
            return False  # several pushes per window cost more than its one direct merge
        if length <= SOME_PANES and sum(table.num_rows for table in self._panes.values()) <= FEW_ROWS:
            return False
        return length > FEW_PANES

    def _once(self, window: int, queue: PaneQueue) -> pa.Table:
        """Answer the only window: no other uses its merges, so it needs none but one, unless memory is short."""
        try:
            return self._direct()
        except MemoryLimitError:
            if not self._sharing_pays() or self._own:  # a queue of the query's own takes as much
                raise
            return self._shared(window, queue)

    def _direct(self) -> pa.Table:
        query = self._query.query
        self._ask(self._step)
        return query.lower(query.combine(list(self._panes.values())))

    def _shared(self, window: int, queue: PaneQueue) -> pa.Table:
        # Panes are merged two at a time, and the queue may keep a merge for each.
        self._ask(self._kept + 2 * max(self._steps.values()))
        queue.evict_before(self._query.windows.panes_of(window)[0])
        self._push(queue)
        return queue.answer()

    def _push(self, queue: PaneQueue) -> None:
        for pane, partial in self._panes.items():
            if self._newest is None or pane > self._newest:
                queue.push(pane, partial)
                self._newest = pane

    def _pane(self, partials: tuple[P, ...], load: Callable[[P], pa.Table]) -> pa.Table:
        tables = [load(partial) for partial in partials]
        if len(tables) == 1:
            return tables[0]
        self._ask(step_bytes(tables))
        return self._query.query.combine(tables)


def _scalar(value: object, kind: pa.DataType) -> pa.Array:
    """Return an array of one value; a bound of a window is in microseconds."""
    return pa.array([value], pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array([value], kind)
