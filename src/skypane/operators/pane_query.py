"""The pane-level query (PLQ): computes one partial per pane from rows in any order (paper 1, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.pane_counts import PaneCount, merged_sources, merged_times
from skypane.operators.entry.rejected import Rejection
from skypane.operators.entry.row_runs import RunRecorder, UnitRuns
from skypane.operators.memory_estimates import step_bytes
from skypane.operators.query import BulkQuery, Query, lift_panes
from skypane.operators.row_buffer import BUFFER_ROWS, RowBuffer, lifting_bytes
from skypane.progress.pane_arrivals import SourceCount
from skypane.types import IntArray, Micros


@dataclass(frozen=True, slots=True)
class PanePartial:
    """The partial of one worker's rows of one pane; `busy` is the time that it took in seconds, if measured."""

    count: PaneCount
    partial: pa.Table
    busy: float = 0.0

    @property
    def pane(self) -> int:
        return self.count.pane


@dataclass(frozen=True, slots=True)
class LiftResult:
    """The result of a worker after its last row."""

    partials: tuple[PanePartial, ...]
    rejection: Rejection
    #: counts of the rows with a valid time by source; empty if no source column is named
    sources: Mapping[str, SourceCount]
    #: newest times by the clocks of the sources whose clocks are off
    shown: Mapping[str, Micros]
    #: the rows with a valid time in the order of reading, by unit; None: not known
    units: tuple[UnitRuns, ...] | None = ()


def no_clock() -> float:
    """Return 0.0: the clock of a worker whose work is not measured."""
    return 0.0


class PaneQuery:
    """One PLQ worker: absorbs record batches, keeps the partials of each pane, and returns them merged at the end.

    clock   returns seconds, to measure the work on each pane
    """

    def __init__(
        self,
        query: Query,
        gate: EntryRules,
        *,
        buffer_rows: int = BUFFER_ROWS,
        clock: Callable[[], float] = no_clock,
    ) -> None:
        self._query = query
        self._gate = gate
        self._clock = clock
        self._buffer = RowBuffer(buffer_rows)
        #: the most estimated bytes for combining the partials of one pane
        self._largest = 0
        self._partials: dict[int, list[PanePartial]] = {}
        self._rejections: list[Rejection] = []
        self._sources: list[Mapping[str, SourceCount]] = []
        self._shown: list[Mapping[str, Micros]] = []
        self._recorder = RunRecorder()

    def absorb(self, batch: pa.RecordBatch, units: IntArray | None = None) -> None:
        """Add rows to the buffer, and lift them when it is full.

        units   the unit of each row (row_runs.py); None: the order of reading is not needed
        """
        if self._buffer.add(batch, units):
            self._lift()

    def step_bytes(self, *coming: pa.RecordBatch) -> int:
        """Return the estimated bytes of the next step, in addition to those held, if `coming` is absorbed before it."""
        return self._buffer.lifting + sum(map(lifting_bytes, coming)) + self._largest

    def close(self) -> LiftResult:
        """Lift the remaining rows and return one partial per pane, oldest pane first."""
        self._lift()
        return LiftResult(
            partials=tuple(self._merged(self._partials.pop(pane)) for pane in sorted(self._partials)),
            rejection=Rejection().merge(*self._rejections),
            sources=merged_sources(self._sources),
            shown=merged_times(self._shown),
            units=self._recorder.units(),
        )

    def _lift(self) -> None:
        if (taken := self._buffer.take()) is not None:
            self.take(*taken)

    def take(self, rows: pa.Table, units: IntArray | None) -> Rejection:
        """Lift rows at once, without the buffer, and return those that may not enter."""
        entry = self._gate.split(rows)
        self._recorder.add(
            entry.panes, entry.times, units if units is None or entry.counted is None else units[entry.counted]
        )
        # One pane at a time gives the cost of each pane; a bulk query lifts all panes at once, which is faster.
        together = [entry.usable] if isinstance(self._query, BulkQuery) else [(part,) for part in entry.usable]
        for parts in together:
            began = self._clock()
            lifted = lift_panes(self._query, [part.rows for part in parts])
            busy = (self._clock() - began) / max(1, sum(part.count.rows for part in parts))
            for part, partial in zip(parts, lifted, strict=True):
                partials = self._partials.setdefault(part.pane, [])
                partials.append(PanePartial(part.count, partial, busy * part.count.rows))
                self._largest = max(self._largest, step_bytes(one.partial for one in partials))
        self._rejections.append(entry.rejection)
        self._sources.append(entry.sources)
        self._shown.append(entry.shown)
        return entry.rejection

    def _merged(self, parts: list[PanePartial]) -> PanePartial:
        if len(parts) == 1:
            return parts[0]
        count = reduce(PaneCount.merge, (part.count for part in parts))
        began = self._clock()
        combined = self._query.combine([part.partial for part in parts])
        return PanePartial(count, combined, sum(part.busy for part in parts) + self._clock() - began)
