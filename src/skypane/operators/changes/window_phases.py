"""Phases: ranges of windows in which an aggregate has functions whose values are unknown.

A function that was added has no state of the rows read before. The windows that hold such rows answer it with null; all
other windows, and all other functions, are answered as if nothing had changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.open_panes import WindowTask
from skypane.operators.window_query import Ask, P, StayAnswer, WindowAnswer, WindowQuery, WindowWorker, no_limit
from skypane.snapshots import JsonState
from skypane.types import ConfigError
from skypane.windows import Windows


@dataclass(frozen=True, slots=True)
class Phase(JsonState):
    """The windows [begin, end), which answer the functions `unknown` with null, and are filtered by `choice`."""

    begin: int
    end: int
    unknown: tuple[str, ...]
    choice: AnswerFilter


def phase_of(phases: Sequence[Phase], window: int) -> Phase | None:
    """Return the phase of a window; None if all its values are known."""
    return next((phase for phase in phases if phase.begin <= window < phase.end), None)


def left_of(phases: Sequence[Phase], next_window: int | None) -> tuple[Phase, ...]:
    """Return the phases that have windows from `next_window` on."""
    return tuple(phase for phase in phases if next_window is None or phase.end > next_window)


def holding(windows: Windows, panes: Collection[int], next_window: int | None) -> list[tuple[int, int]]:
    """Return the ranges [begin, end) of unanswered windows that hold one of these panes, ascending and disjoint."""
    ranges: list[tuple[int, int]] = []
    for pane in sorted(panes):
        of_pane = windows.windows_of(pane)
        begin = of_pane.start if next_window is None else max(of_pane.start, next_window)
        if ranges and begin <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], of_pane.stop))
        elif begin < of_pane.stop:
            ranges.append((begin, of_pane.stop))
    return ranges


@dataclass(frozen=True)
class PartlyKnown:
    """An aggregate in a phase, a Query for the windows of this phase alone: values of `unknown` functions are null, and `choice` filters the rows."""

    aggregate: Aggregate
    unknown: tuple[str, ...]
    choice: AnswerFilter

    @property
    def required(self) -> tuple[str, ...]:
        return self.aggregate.required

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        return self.aggregate.reads(schema)

    def validate(self, schema: pa.Schema) -> None:
        self.aggregate.validate(schema)

    def lift(self, rows: pa.Table) -> pa.Table:
        return self.aggregate.lift(rows)

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self.aggregate.combine(partials)

    def lower(self, partial: pa.Table) -> pa.Table:
        rows = self.aggregate.chosen_by(AnswerFilter()).lower(partial)
        for name in self.unknown:
            at = rows.schema.get_field_index(name)
            field = rows.schema.field(at)
            rows = rows.set_column(at, field, pa.nulls(rows.num_rows, field.type))
        return self.choice.of(rows)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.aggregate.output_schema(schema)

    def describe(self) -> dict[str, Any]:
        return {**self.aggregate.describe(), "unknown": list(self.unknown), **self.choice.describe()}


@dataclass(frozen=True, slots=True)
class PhasedWindows(WindowQuery):
    """The windows of an aggregate with phases."""

    phases: tuple[Phase, ...] = ()

    def worker(self, ask: Ask = no_limit, windows: int | None = None) -> PhasedWorker:
        """Return a new worker, which answers so many windows in all; None: any number."""
        return PhasedWorker(self, ask, windows)

    def in_phase(self, phase: Phase | None) -> WindowQuery:
        """Return the query of the windows of a phase."""
        versions = self.versioned, self.changes, self.early
        whole = WindowQuery(self.query, self.windows, self.zone, *versions, self.hidden, self.stays)
        if phase is None:
            return whole
        if not isinstance(self.query, Aggregate):
            raise ConfigError(f"only aggregates have unknown values, not {self.query}")
        return replace(whole, query=PartlyKnown(self.query, phase.unknown, phase.choice))

    @classmethod
    def of(cls, query: WindowQuery, phases: tuple[Phase, ...]) -> PhasedWindows:
        """Return the windows of a query with phases."""
        versions = query.versioned, query.changes, query.early
        return cls(query.query, query.windows, query.zone, *versions, query.hidden, query.stays, phases)


class PhasedWorker(WindowWorker):
    """A worker for each phase, and one for the windows in none."""

    def __init__(self, query: PhasedWindows, ask: Ask, windows: int | None) -> None:
        self._phased = query
        self._limits = ask, windows
        self._workers: dict[tuple[int, int] | None, WindowWorker] = {}

    @property
    def query(self) -> WindowQuery:
        return self._phased

    def anew(self, windows: int | None = None) -> PhasedWorker:
        """Return a worker of the same query that has no merges yet, for so many windows; None: any number."""
        ask, _ = self._limits
        return PhasedWorker(self._phased, ask, windows)

    def answers(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[WindowAnswer]:
        """Yield the answers of windows in ascending order, all younger than those answered before."""
        for worker, some in self._by_phase(tasks):
            yield from worker.answers(some, load)

    def stays(self, tasks: Sequence[WindowTask[P]], load: Callable[[P], pa.Table]) -> Iterator[StayAnswer]:
        """Yield the answers of answers() as stays, which end with their phase."""
        for worker, some in self._by_phase(tasks):
            yield from worker.stays(some, load)

    def _by_phase(self, tasks: Sequence[WindowTask[P]]) -> Iterator[tuple[WindowWorker, list[WindowTask[P]]]]:
        for phase, some in groupby(tasks, lambda task: phase_of(self._phased.phases, task.window)):
            key = None if phase is None else (phase.begin, phase.end)
            if key not in self._workers:
                self._workers[key] = self._phased.in_phase(phase).worker(*self._limits)
            yield self._workers[key], list(some)
